// The path of one connection to a clusterset address, read at the home of the cluster that asks and chosen as its proxies do.

import { type AddressClaim, addressClaimName, addressClaimType } from '../addresses/address-claim.ts';
import { formatIp, type Ip } from '../base/net/ip.ts';
import type { Clock } from '../base/world.ts';
import { listAll } from '../clusterset/explain/set-state.ts';
import { type ServiceImport, serviceImportType } from '../clusterset/kinds/service-import.ts';
import { allocatedRanges } from '../clusterset/rules/address-plan.ts';
import { clusterSetDnsName } from '../clusterset/rules/clusterset-dns.ts';
import { readLocality } from '../clusterset/rules/locality.ts';
import { readNetworks } from '../clusterset/rules/networks/networks.ts';
import { getOrUndefined } from '../kube/client/absent.ts';
import type { Client } from '../kube/client/client.ts';
import { isForbidden, isNotFound } from '../kube/objects/api-error.ts';
import { type ConfigMap, configMapType } from '../kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType, importedServiceNameLabel } from '../kube/objects/endpoint-slice.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { anyNode, type ConnectionPath, connectionPath } from '../proxy/connection-path.ts';
import { rangesAtHome } from '../proxy/ranges.ts';
import { ProxyState } from '../proxy/state.ts';
import { emptyViewInput, viewOf } from '../proxy/view.ts';
import { readPairs } from './pairs.ts';
import { formatTable } from './table.ts';

export interface PathRequest {
  readonly clock: Pick<Clock, 'wallMs'>;
  /** The cluster of this home. */
  readonly self: string;
  readonly address: Ip;
  readonly port: number;
}

/** Undefined if no import has the address. */
export async function readConnectionPath(home: Client, request: PathRequest): Promise<ConnectionPath | undefined> {
  const { self, clock, address, port } = request;
  const ip = formatIp(address);
  const [imports, claims] = await Promise.all([
    listAll<ServiceImport>(home, serviceImportType).catch(noneIf(isNotFound)),
    listAll<AddressClaim>(home, addressClaimType).catch(noneIf(isForbidden)),
  ]);
  // The address of one endpoint of a headless service is in no import.
  const claim = claims.find(({ metadata }) => metadata.name === addressClaimName(ip));
  const users = imports.filter((each) => each.spec?.ips?.includes(ip) || isForEndpointOf(claim, each));
  if (users.length === 0) return undefined;
  const ref = { namespace: systemNamespace, name: clusterSetDnsName };
  const options = await getOrUndefined<ConfigMap>(home, configMapType, ref);
  const pairs = await readPairs(home, { self, clock });
  const input = {
    ...{ ...emptyViewInput, cluster: self, ranges: rangesAtHome(options) },
    ...{ locality: readLocality(options ?? {}), networks: readNetworks(options ?? {}) },
  };
  const state = new ProxyState(viewOf(input));
  state.addresses.setRanges(allocatedRanges(options ?? {}));
  for (const claim of claims) state.addresses.upsertClaim(claim);
  state.addresses.setListed();
  for (const each of users) {
    state.facts.upsertServiceImport(each);
    for (const slice of await slicesOf(home, each)) state.facts.upsertEndpointSlice(slice);
  }
  const problems = new Map(pairs.map(({ cluster, way, text }) => [cluster, way === 'none' ? text : undefined]));
  state.setNearSide({ addresses: { IPv4: anyNode, IPv6: anyNode }, problems });
  state.takeDirty();
  const [first] = users;
  const service = state.addresses.holderOf(ip) ?? `${first!.metadata.namespace}/${first!.metadata.name}`;
  const path = connectionPath(state, service, { ip, port });
  const carried = pairs.filter(({ cluster, isWell, way }) => !isWell && way === 'gateway' && isUsed(path, cluster));
  return { ...path, problems: [...path.problems, ...carried.map(({ cluster, text }) => `${cluster}: ${text}`)] };
}

function isForEndpointOf(claim: AddressClaim | undefined, { metadata, spec }: ServiceImport): boolean {
  const { kind, namespace, name } = claim?.spec?.owner ?? {};
  const isOwner = kind === serviceImportType.kind && namespace === metadata.namespace && name === metadata.name;
  return isOwner && spec?.type === 'Headless';
}

function noneIf(isExpected: (error: unknown) => boolean): (error: unknown) => never[] {
  return (error) => {
    if (isExpected(error)) return [];
    throw error;
  };
}

function isUsed({ port }: ConnectionPath, cluster: string): boolean {
  return port?.ways.some((way) => way.cluster === cluster) ?? false;
}

function slicesOf(home: Client, { metadata }: ServiceImport): Promise<EndpointSlice[]> {
  const { namespace, name } = metadata;
  const labelSelector = `${importedServiceNameLabel}=${name}`;
  return listAll<EndpointSlice>(home, endpointSliceType, { namespace, labelSelector });
}

export function formatConnectionPath(to: string, { service, from, port, problems }: ConnectionPath): string[] {
  const ways = port?.ways ?? [];
  return [
    `connection  ${to}${from === '' ? '' : ` from ${from}`}`,
    `service     ${service}${port === undefined ? '' : `, port ${port.port}/${port.protocol}`}`,
    ...(ways.length === 0
      ? ['goes to     nowhere: it is refused']
      : [
          '',
          ...formatTable(
            ['CLUSTER', 'SHARE', 'ENDPOINTS', 'PATH'],
            ways.flatMap(({ cluster, share, endpoints, hops }) =>
              hops.map((hop, index) =>
                index === 0
                  ? [cluster, `${(100 * share).toFixed(0)} %`, `${endpoints}`, hop]
                  : ['', '', '', `-> ${hop}`],
              ),
            ),
          ),
        ]),
    ...(port?.later ?? []).map(
      ({ cluster, endpoints }) => `note: ${endpoints} ready endpoints of ${cluster} are not used: others come first`,
    ),
    ...problems.map((problem) => `note: ${problem}`),
  ];
}
