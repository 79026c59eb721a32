// Reads how the CoreDNS of a cluster is configured, and what it should ask.

import { clusterSetDnsName, readDnsOptions } from '../../clusterset/rules/clusterset-dns.ts';
import type { ClusterDnsFacts } from '../../doctor/facts.ts';
import {
  type ClusterDns,
  corednsRef,
  customRef,
  type DnsWanted,
  stubState,
} from '../../install/coredns/cluster-dns.ts';
import { defaultZones } from '../../install/coredns/stub-blocks.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';

const dnsServiceRef = { namespace: systemNamespace, name: 'portolan-dns' } as const;

export async function readClusterDns(client: Client): Promise<ClusterDns> {
  const [coredns, custom] = await Promise.all(
    [corednsRef, customRef].map((ref) => getOrUndefined<ConfigMap>(client, configMapType, ref)),
  );
  return { coredns, custom };
}

/** Undefined if this cluster has no resolver of ours behind an address. */
export async function readDnsWanted(client: Client): Promise<DnsWanted | undefined> {
  const service = await getOrUndefined<Service>(client, serviceType, dnsServiceRef);
  const { clusterIPs, clusterIP } = service?.spec ?? {};
  const addresses = (clusterIPs ?? [clusterIP ?? '']).filter((ip) => ip !== '' && ip !== 'None');
  if (addresses.length === 0) return undefined;
  const ref = { namespace: systemNamespace, name: clusterSetDnsName };
  const { zone } = readDnsOptions((await getOrUndefined<ConfigMap>(client, configMapType, ref)) ?? {});
  return { addresses, zones: [zone, ...defaultZones.slice(1)] };
}

/** Undefined where CoreDNS asks our resolvers, serves the zone in a way of its own, or is not there; or they are not. */
export async function findOtherDns(client: Client): Promise<ClusterDnsFacts | undefined> {
  const wanted = await readDnsWanted(client);
  if (wanted === undefined) return undefined;
  const dns = await readClusterDns(client);
  const state = stubState(dns, wanted);
  if (dns.coredns === undefined || state.kind === 'asks' || state.kind === 'other') return undefined;
  const { addresses, zones } = wanted;
  return { zone: zones[0]!, addresses, forwards: state.kind === 'elsewhere' ? state.forwards : [] };
}
