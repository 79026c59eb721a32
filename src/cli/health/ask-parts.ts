// Asks the resolvers and proxies of a cluster through its home: a name of each resolver, a connection of each proxy. Several
// at a time, and each within a bound: a part that does not answer is named, and hides no other.

import { listAll } from '../../clusterset/explain/set-state.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { clusterSetDnsName, readDnsOptions } from '../../clusterset/rules/clusterset-dns.ts';
import type { Explanation } from '../../dns/explain/explanation.ts';
import type { Answers, AskedName, ResolverState, TriedConnection } from '../../doctor/facts.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { PartAdmin } from '../../kube/client/part-admin.ts';
import { ApiError } from '../../kube/objects/api-error.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType, importedServiceNameLabel } from '../../kube/objects/endpoint-slice.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import { keyOf } from '../../kube/objects/object.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import type { Report } from '../../proxy/connectivity/report.ts';
import { everyPart } from '../every-part.ts';

/** Enough to notice a resolver that is cut off, without asking for everything. */
const namesMax = 20;
const connectedServicesMax = 3;
const connectionsEach = 3;
/** A part answers from memory; one that hangs must not keep the reader waiting. */
const answerMsMax = 3_000;
/** It tries connections before it answers. */
const triedMsMax = 8_000;

export interface PartAsker {
  resolverStates(): Promise<Answers<ResolverState>>;
  names(): Promise<Answers<AskedName>>;
  connections(): Promise<Answers<TriedConnection>>;
}

export function createPartAsker(client: Client, nowMs: number): PartAsker {
  const admin = new PartAdmin(client);
  const ask = <T>(lease: Lease, path: string, timeoutMs = answerMsMax) => admin.ask<T>(lease, path, { timeoutMs });
  return {
    resolverStates: () =>
      everyPart(client, { part: 'dns', nowMs }, async (lease, resolver) => {
        const state = await ask<{ stale?: string[]; staleWhy?: string; copyProblem?: string }>(lease, '/status');
        const { stale = [], staleWhy = '', copyProblem = '' } = state;
        return [{ resolver, stale, why: staleWhy, copyProblem }];
      }),
    names: async () => {
      const wanted = await namesToAsk(client);
      return everyPart(client, { part: 'dns', nowMs }, (lease, resolver) =>
        Promise.all(
          wanted.map(async ({ fullName, service, ips }) => {
            const query = new URLSearchParams({ name: fullName, type: ips.some(isIpv4) ? 'A' : 'AAAA' });
            const got = addressesIn(await ask<Explanation>(lease, `/explain?${query}`));
            const expected = ips.filter((ip) => isIpv4(ip) === ips.some(isIpv4));
            return { name: `${fullName} (${service})`, resolver, wanted: expected, got };
          }),
        ),
      );
    },
    connections: async () => {
      const services = await servicesToConnect(client);
      return everyPart(client, { part: 'proxy', nowMs }, (lease, from) =>
        Promise.all(
          services.map(async (service) => {
            const query = new URLSearchParams({
              service,
              count: String(connectionsEach),
              lookup: 'off',
              endpoints: 'on',
            });
            const { problems } = await ask<Report>(lease, `/connectivity?${query}`, triedMsMax);
            return { service, from, problems };
          }),
        ),
      );
    },
  };
}

interface WantedName {
  readonly fullName: string;
  /** `namespace/name`. */
  readonly service: string;
  readonly ips: readonly string[];
}

/** Names of imported services, with the addresses that a resolver has to return. */
export async function namesToAsk(client: Client): Promise<readonly WantedName[]> {
  const ref = { namespace: systemNamespace, name: clusterSetDnsName };
  const { zone } = readDnsOptions((await getOrUndefined<ConfigMap>(client, configMapType, ref)) ?? {});
  const imports = await importsWithAddress(client);
  return imports.slice(0, namesMax).map((one) => ({
    fullName: `${one.metadata.name}.${one.metadata.namespace}.svc.${zone}`,
    service: keyOf(one),
    ips: one.spec.ips ?? [],
  }));
}

async function importsWithAddress(client: Client): Promise<ServiceImport[]> {
  const imports = await listAll<ServiceImport>(client, serviceImportType).catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 404) return [];
    throw error;
  });
  return imports.filter((object) => (object.spec.ips ?? []).length > 0 && !isAddressOfAnother(object));
}

/** Its address is not answered, which has a code of its own. */
function isAddressOfAnother({ status }: ServiceImport): boolean {
  const conflict = conditionOf(status?.conditions, 'AddressConflict');
  return conflict?.reason === 'HeldByAnother' || conflict?.reason === 'NotClaimed';
}

/** Without a ready endpoint or a TCP port nothing would answer, and that has a code of its own. */
async function servicesToConnect(client: Client): Promise<string[]> {
  const slices = await listAll<EndpointSlice>(client, endpointSliceType, { labelSelector: importedServiceNameLabel });
  const ready = new Set(
    slices
      .filter(({ endpoints }) => (endpoints ?? []).some(({ conditions }) => conditions?.ready !== false))
      .map(({ metadata }) => `${metadata.namespace}/${metadata.labels?.[importedServiceNameLabel]}`),
  );
  return (await importsWithAddress(client))
    .filter(
      (one) => ready.has(keyOf(one)) && (one.spec.ports ?? []).some(({ protocol }) => (protocol ?? 'TCP') === 'TCP'),
    )
    .map(keyOf)
    .slice(0, connectedServicesMax);
}

function isIpv4(ip: string): boolean {
  return !ip.includes(':');
}

/** The error of DNS in place of addresses. */
function addressesIn({ rcode, records }: Explanation): readonly string[] | string {
  if (rcode !== 'NOERROR') return rcode;
  return records.flatMap(({ text }) => /^(?:A|AAAA) (\S+)$/.exec(text)?.[1] ?? []);
}
