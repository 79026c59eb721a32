// The wishes for one import, resolved to ids of clusters: which clusters share its connections, which take over, which are never
// used. The agent resolves policies and writes the result on the import; everybody who chooses endpoints reads it there. Pure.

import { BoundedCache } from '../../../base/bounded-cache.ts';
import { isUdpListenerPort, type UdpWay, udpWaysMax } from '../networks/udp-ways.ts';

/** On a ServiceImport, written by the agent of its cluster. */
export const routingAnnotation = 'portolan.dev/routing';

/** On a ServiceImport: the ServiceImportPolicy that it goes by. */
export const routedByAnnotation = 'portolan.dev/routed-by';

interface RoutingGroup {
  readonly clusters: readonly string[];
  /** Percent of new connections. Without one the group takes over what others cannot serve, in the order of groups. */
  readonly weight?: number;
}

/** A TrafficShift under way: percent of what one cluster would serve, for another one. 0 while it only counts. */
export interface RoutingShift {
  readonly from: string;
  readonly to: string;
  readonly percent: number;
}

export interface Routing {
  /** A cluster belongs to the first group that names it. */
  readonly groups: readonly RoutingGroup[];
  readonly excluded: readonly string[];
  /** Fewer ready endpoints than this and a group or tier gives a part of its share away. */
  readonly minReady?: { readonly count: number } | { readonly percent: number };
  /** Only with `minReady`: so many of a cluster's ready endpoints count for it. All of a cluster that is not here. */
  readonly counted?: Readonly<Record<string, number>>;
  /** Percent of its share that a cluster itself wants, 1 to 99. */
  readonly lowered: Readonly<Record<string, number>>;
  /** Lies over all of the above. */
  readonly shift?: RoutingShift;
  /** The cluster's own name of the service leads to this import. Says nothing about who serves. */
  readonly isTransparent?: boolean;
  /** Its UDP ports that are carried between networks. Says nothing about who serves. */
  readonly udp?: readonly UdpWay[];
}

export const noRouting: Routing = { groups: [], excluded: [], lowered: {} };

/** Whether nobody has a wish about who serves. */
export function isNoRouting({ groups, excluded, minReady, lowered, shift }: Routing): boolean {
  const hasLists = groups.length > 0 || excluded.length > 0 || Object.keys(lowered).length > 0;
  return !hasLists && minReady === undefined && shift === undefined;
}

/** Whether endpoints that are not ready matter. */
export function needsUnready({ minReady }: Routing): boolean {
  return minReady !== undefined && 'percent' in minReady;
}

/** Short, because it is kept for each import: `{"g":[[["east"],95],[["west"],5],[["south"]]],"x":["north"],"n":3}`. */
export function formatRouting(routing: Routing): string {
  const { groups, excluded, minReady, counted = {}, lowered, shift, isTransparent, udp = [] } = routing;
  return JSON.stringify({
    ...(groups.length === 0
      ? {}
      : { g: groups.map(({ clusters, weight }) => (weight === undefined ? [clusters] : [clusters, weight])) }),
    ...(excluded.length === 0 ? {} : { x: excluded }),
    ...(minReady === undefined ? {} : 'count' in minReady ? { n: minReady.count } : { p: minReady.percent }),
    ...(Object.keys(counted).length === 0 ? {} : { r: counted }),
    ...(Object.keys(lowered).length === 0 ? {} : { l: lowered }),
    ...(shift === undefined ? {} : { s: [shift.from, shift.to, shift.percent] }),
    ...(isTransparent === true ? { t: 1 } : {}),
    ...(udp.length === 0 ? {} : { u: udp.map(({ cluster, port, listenerPort }) => [cluster, port, listenerPort]) }),
  });
}

/** In words: `east 95 %, west 5 %; then south; never north`. Undefined if there is nothing to say. */
export function describeRouting({
  groups,
  excluded,
  minReady,
  counted = {},
  lowered,
  shift,
}: Routing): string | undefined {
  const namesOf = (clusters: readonly string[]) => clusters.join(' and ') || 'nobody who exports it';
  const weighted = groups.flatMap(({ clusters, weight }) =>
    weight === undefined ? [] : [`${namesOf(clusters)} ${weight} %`],
  );
  const fallbacks = groups.flatMap(({ clusters, weight }) => (weight === undefined ? [namesOf(clusters)] : []));
  const parts = [
    ...(weighted.length === 0 ? [] : [weighted.join(', ')]),
    ...(fallbacks.length === 0 ? [] : [`${weighted.length === 0 ? 'first' : 'then'} ${fallbacks.join(', then ')}`]),
    ...(excluded.length === 0 ? [] : [`never ${excluded.join(', ')}`]),
    ...Object.entries(lowered).map(([cluster, percent]) => `${cluster} wants ${percent} % of its share`),
    ...(minReady === undefined
      ? []
      : [`less to those with fewer than ${'count' in minReady ? minReady.count : `${minReady.percent} %`} ready`]),
    ...Object.entries(counted).map(
      ([cluster, count]) => `of ${cluster} only ${count} count for that, until all have been ready for a while`,
    ),
    ...(shift === undefined ? [] : [`${shift.percent} % of the part of ${shift.from} is shifted to ${shift.to}`]),
  ];
  return parts.length === 0 ? undefined : parts.join('; ');
}

const parsed = new BoundedCache<Routing>(1_000);

/** One without meaning counts as none: traffic goes on. The same object for the same text, as long as it is remembered. */
export function readRouting(text: string): Routing {
  if (text === '') return noRouting;
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const routing = parse(text);
  parsed.set(text, routing);
  return routing;
}

function parse(text: string): Routing {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return noRouting;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return noRouting;
  const { g, x, n, p, r, l, s, t, u } = value as Record<string, unknown>;
  const shift = shiftOf(s);
  const counted = numbersOf(r, 1, 1_000_000);
  const udp = udpWaysOf(u);
  return {
    groups: Array.isArray(g) ? g.flatMap(groupOf) : [],
    excluded: textsOf(x),
    ...(isWithin(n, 1, 1_000_000)
      ? { minReady: { count: n } }
      : isWithin(p, 1, 100)
        ? { minReady: { percent: p } }
        : {}),
    ...(Object.keys(counted).length === 0 ? {} : { counted }),
    lowered: numbersOf(l, 1, 99),
    ...(shift === undefined ? {} : { shift }),
    ...(t === 1 ? { isTransparent: true } : {}),
    ...(udp.length === 0 ? {} : { udp }),
  };
}

function udpWaysOf(value: unknown): UdpWay[] {
  return (Array.isArray(value) ? (value as unknown[]).slice(0, udpWaysMax) : []).flatMap((entry): UdpWay[] => {
    const [cluster, port, listenerPort]: readonly unknown[] = Array.isArray(entry) ? entry : [];
    const isWay = typeof cluster === 'string' && isWithin(port, 1, 65_535) && isUdpListenerPort(listenerPort);
    return isWay ? [{ cluster, port, listenerPort }] : [];
  });
}

function shiftOf(value: unknown): RoutingShift | undefined {
  const [from, to, percent]: readonly unknown[] = Array.isArray(value) ? value : [];
  const isNamed = typeof from === 'string' && typeof to === 'string' && from !== to;
  return isNamed && isWithin(percent, 0, 100) ? { from, to, percent } : undefined;
}

function groupOf(entry: unknown): RoutingGroup[] {
  if (!Array.isArray(entry)) return [];
  const [clusters, weight] = entry as unknown[];
  const named = textsOf(clusters);
  if (weight === undefined) return [{ clusters: named }];
  return isWithin(weight, 0, 100) ? [{ clusters: named, weight }] : [];
}

function numbersOf(value: unknown, least: number, most: number): Record<string, number> {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).filter(([, number]) => isWithin(number, least, most)));
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
}
