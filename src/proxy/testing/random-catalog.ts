// Random imports and slices of a small clusterset, with every feature that the choice depends on, and changes of them; and
// the endpoints that a connection may reach, worked out from the objects alone. For tests that compare it with the plan.

import type { ServiceImport } from '../../clusterset/kinds/service-import.ts';
import { modelShares } from '../../clusterset/rules/choice/testing/share-model.ts';
import { formatRouting, readRouting, routingAnnotation } from '../../clusterset/rules/routing/routing.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';

export type Chance = () => number;

export interface Situation {
  readonly self: { readonly cluster: string; readonly zone: string; readonly region: string };
  readonly preference: 'Spread' | 'NearestFirst';
  readonly places: Readonly<Record<string, { readonly zone: string; readonly region: string }>>;
  /** Addresses of this node begin with this. */
  readonly nodePrefix: string;
}

export interface Connection {
  readonly ip: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
}

const clusters = ['east', 'west', 'south'] as const;
const protocols = ['TCP', 'UDP', 'SCTP'] as const;
const portNames = ['http', 'dns', 'rpc', ''] as const;

const places: Situation['places'] = {
  east: { zone: 'a', region: 'north' },
  west: { zone: 'b', region: 'north' },
  south: { zone: 'a', region: 'south' },
};

export function randomSituation(chance: Chance): Situation {
  const cluster = pick(chance, clusters);
  return {
    self: { cluster, zone: pick(chance, ['a', 'b']), region: places[cluster]!.region },
    preference: chance() < 0.5 ? 'Spread' : 'NearestFirst',
    places,
    nodePrefix: '10.1.0.',
  };
}

export function randomImport(chance: Chance, index: number): ServiceImport {
  const ports = portNames.flatMap((name, at) =>
    chance() < 0.5 ? [] : [{ name, protocol: pick(chance, protocols), port: 80 + at }],
  );
  // One in ten claims the address of its neighbour.
  const own = chance() < 0.1 ? index + 1 : index;
  const ips = [`243.0.0.${own + 1}`, `fd70:6f72:74f3::${(own + 1).toString(16)}`].filter(() => chance() < 0.8);
  return {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { name: `s${index}`, namespace: 'shop', ...randomRouting(chance) },
    spec: {
      type: chance() < 0.1 ? 'Headless' : 'ClusterSetIP',
      ips,
      ports,
      sessionAffinity: chance() < 0.3 ? 'ClientIP' : 'None',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: pick(chance, [5, 60]) } },
      ...(chance() < 0.2 ? { internalTrafficPolicy: 'Local' } : {}),
      ...(chance() < 0.3 ? { trafficDistribution: pick(chance, ['PreferClose', 'PreferSameZone', 'Unheard']) } : {}),
    },
  };
}

function randomRouting(chance: Chance): { annotations?: Record<string, string> } {
  if (chance() < 0.5) return {};
  const some = () => clusters.filter(() => chance() < 0.5);
  const groups = Array.from({ length: Math.floor(chance() * 4) }, () => ({
    clusters: some(),
    ...(chance() < 0.7 ? { weight: Math.floor(chance() * 34) } : {}),
  }));
  const minReady =
    chance() < 0.5 ? { count: 1 + Math.floor(chance() * 4) } : { percent: 1 + Math.floor(chance() * 100) };
  const routing = {
    groups,
    excluded: chance() < 0.3 ? [pick(chance, clusters)] : [],
    ...(chance() < 0.3 ? { minReady } : {}),
    lowered: chance() < 0.3 ? { [pick(chance, clusters)]: 1 + Math.floor(chance() * 99) } : {},
  };
  return { annotations: { [routingAnnotation]: formatRouting(routing) } };
}

export function randomSlice(chance: Chance, service: number, name: number): EndpointSlice {
  const isV6 = chance() < 0.4;
  const cluster = pick(chance, clusters);
  const count = Math.floor(chance() * 5);
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `s${service}-${name}`,
      namespace: 'shop',
      labels: {
        'multicluster.kubernetes.io/service-name': `s${service}`,
        'multicluster.kubernetes.io/source-cluster': cluster,
      },
    },
    addressType: isV6 ? 'IPv6' : 'IPv4',
    ports: portNames.flatMap((port) =>
      chance() < 0.3 ? [] : [{ name: port, protocol: pick(chance, protocols), port: 8000 + Math.floor(chance() * 3) }],
    ),
    endpoints: Array.from({ length: count }, () => {
      const host = Math.floor(chance() * 8) + 1;
      const net = clusters.indexOf(cluster) + 1;
      return {
        addresses: [isV6 ? `fd00:${net}::${host}` : `10.${net}.${host % 2}.${host}`],
        conditions: { ready: chance() < 0.8 },
        ...(chance() < 0.5 ? { zone: pick(chance, ['a', 'b']) } : {}),
      };
    }),
  };
}

/** The share of each endpoint that a connection may reach, by `ADDRESS . PORT`; undefined if no import has the address and port. */
export function reachable(
  to: Connection,
  {
    imports,
    slices,
    claims,
    situation,
  }: {
    imports: readonly ServiceImport[];
    slices: readonly EndpointSlice[];
    /** Name of the import that holds an address. */
    claims: ReadonlyMap<string, string>;
    situation: Situation;
  },
): ReadonlyMap<string, number> | undefined {
  const users = imports.filter(({ spec }) => spec.type !== 'Headless' && spec.ips?.includes(to.ip));
  const holder = claims.get(to.ip) ?? (users.length === 1 ? users[0]?.metadata.name : undefined);
  const owner = users.find(({ metadata }) => metadata.name === holder);
  const port = owner?.spec.ports?.find((each) => each.protocol === to.protocol && each.port === to.port);
  if (owner === undefined || port === undefined) return undefined;
  let candidates = new Map<string, { tier: number; cluster: string; address: string; isReady: boolean }>();
  for (const slice of slices) {
    const { labels } = slice.metadata;
    if (labels?.['multicluster.kubernetes.io/service-name'] !== owner.metadata.name) continue;
    if ((slice.addressType === 'IPv6') !== to.ip.includes(':')) continue;
    const target = slice.ports?.find((each) => each.name === port.name && each.protocol === port.protocol);
    const cluster = labels['multicluster.kubernetes.io/source-cluster']!;
    for (const { addresses: [address = ''] = [], conditions, zone } of slice.endpoints ?? []) {
      if (target === undefined) continue;
      const isReady = conditions?.ready !== false;
      const key = `${address} . ${target.port}${isReady ? '' : ' absent'}`;
      // The same endpoint in two slices: the first slice that names it says where it is.
      if (!candidates.has(key))
        candidates.set(key, { tier: tierOf(situation, cluster, zone), cluster, address, isReady });
    }
  }
  if (owner.spec.internalTrafficPolicy === 'Local')
    candidates = filter(
      candidates,
      ({ cluster, address, isReady }) =>
        !isReady || (cluster === situation.self.cluster && address.startsWith(situation.nodePrefix)),
    );
  const wantsNearest =
    situation.preference === 'NearestFirst' || /^Prefer(Close|SameZone)$/.test(owner.spec.trafficDistribution ?? '');
  const endpoints = [...candidates].map(([id, candidate]) => ({
    id,
    ...candidate,
    tier: wantsNearest ? candidate.tier : 0,
  }));
  return modelShares(endpoints, readRouting(owner.metadata.annotations?.[routingAnnotation] ?? ''));
}

function tierOf({ self, places: known }: Situation, cluster: string, zone: string | undefined): number {
  const at = zone ?? known[cluster]?.zone;
  if (cluster === self.cluster) return at === self.zone ? 1 : 2;
  const isSameRegion = known[cluster]?.region === self.region;
  if (isSameRegion && at === self.zone) return 3;
  return isSameRegion ? 4 : 5;
}

function filter<T>(map: Map<string, T>, keep: (value: T) => boolean): Map<string, T> {
  return new Map([...map].filter(([, value]) => keep(value)));
}

function pick<T>(chance: Chance, items: readonly T[]): T {
  return items[Math.floor(chance() * items.length)]!;
}

/** The same numbers for the same seed (mulberry32). */
export function seeded(seed: number): Chance {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
