// The filter chain matcher of a listener: port, then virtual IP, then what the connection speaks, then SNI, then the
// longest range. Each level says where to go when nothing fits, so nothing relies on Envoy going back. Pure.

import type { JsonObject } from '../../base/json.ts';
import { formatIp, type IpRange, parseRange } from '../../base/net/ip.ts';
import { prefixLength } from '../../external/rules/choose.ts';
import { compareText } from '../../external/rules/rule.ts';
import {
  type ClassTable,
  hasNames,
  type PortTables,
  type SpeechClass,
  type VipTable,
} from '../../external/rules/tables.ts';
import type { Target } from '../../external/rules/target.ts';
import type { ChainUse } from './chains.ts';
import { extension } from './envoy-names.ts';
import type { HttpClass } from './routes.ts';

/** Hears of each chain that the matcher leads to. */
type UseChain = (use: ChainUse) => string;

const input = (name: string): JsonObject => ({
  name,
  typed_config: { '@type': extension(`matching.common_inputs.network.v3.${name}`) },
});

const xdsMatcher = 'type.googleapis.com/xds.type.matcher.v3';

function leadTo(chain: string): JsonObject {
  const value = { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: chain };
  return { action: { name: 'chain', typed_config: value } };
}

export interface MatcherOptions {
  readonly use: UseChain;
  /** Ports of the proxy's own listeners: what goes there by itself must not go round in circles. */
  readonly ownPorts: readonly number[];
}

export function matcherOf(ports: readonly JsonObjectByPort[], { use, ownPorts }: MatcherOptions): JsonObject {
  const closed = ownPorts.map((port) => [String(port), leadTo(use({ kind: 'blackhole' }))] as const);
  const entries = [...closed, ...ports.map(({ port, onMatch }) => [String(port), onMatch] as const)];
  return tree(
    input('DestinationPortInput'),
    { exact_match_map: { map: Object.fromEntries(entries) } },
    leadTo(use({ kind: 'passthrough' })),
  );
}

export interface JsonObjectByPort {
  readonly port: number;
  readonly onMatch: JsonObject;
}

/** The decisions of a port for a listener that has looked at the first bytes. */
export function inspectedPort(tables: PortTables, options: MatcherOptions): JsonObjectByPort {
  const { port } = tables;
  const fallback = fallbackOf(port, options);
  const raw = rangeTree(tables, 'raw', options.use, fallback);
  // For most ports all classes have the same ranges: then they share one tree.
  const ranges = (one: SpeechClass) => () => {
    const isLikeRaw =
      !(isHttp(one) && hasNames(tables.classes[one])) && hasSameRanges(tables.classes[one], tables.classes.raw);
    return isLikeRaw ? raw : rangeTree(tables, one, options.use, fallback);
  };
  const byClass = speechTree(
    {
      tls: () => nameTree(tables.classes.tls, options.use, ranges('tls')()),
      ...{ http1: ranges('http1'), http2: ranges('http2'), raw: () => raw },
    },
    fallback,
  );
  return { port, onMatch: vipTree(tables.vips, (vip) => vipDecision(vip, options.use, fallback), byClass) };
}

/** The same for a listener that has not: only what is decided without. */
export function plainPort(
  tables: PortTables,
  { vips, hasRanges }: { readonly vips: readonly VipTable[]; readonly hasRanges: boolean },
  options: MatcherOptions,
): JsonObjectByPort {
  const fallback = fallbackOf(tables.port, options);
  const ranges = hasRanges ? rangeTree(tables, 'raw', options.use, fallback) : fallback;
  const decide = ({ targets }: VipTable) =>
    targets.raw === undefined ? fallback : leadTo(options.use(bytesTo(targets.raw)));
  return { port: tables.port, onMatch: vipTree(vips, decide, ranges) };
}

function fallbackOf(port: number, { use, ownPorts }: MatcherOptions): JsonObject {
  return leadTo(use({ kind: ownPorts.includes(port) ? 'blackhole' : 'passthrough' }));
}

function vipTree(vips: readonly VipTable[], decide: (vip: VipTable) => JsonObject, otherwise: JsonObject): JsonObject {
  const entries = vips.map((vip) => ({ ranges: [parseRange(vip.address)!], onMatch: decide(vip) }));
  return ipTree(entries, otherwise);
}

function vipDecision({ targets }: VipTable, use: UseChain, fallback: JsonObject): JsonObject {
  const lead = (one: SpeechClass) => () => {
    const target = targets[one];
    if (target === undefined) return fallback;
    return leadTo(
      use(isHttp(one) && target.speech !== 'bytes' ? { kind: 'vip', target, httpClass: one } : bytesTo(target)),
    );
  };
  return speechTree({ tls: lead('tls'), http1: lead('http1'), http2: lead('http2'), raw: lead('raw') }, fallback);
}

/** Levels that would decide nothing are left out. */
function speechTree(decide: Readonly<Record<SpeechClass, () => JsonObject>>, fallback: JsonObject): JsonObject {
  const [tls, http1, http2, raw] = [decide.tls(), decide.http1(), decide.http2(), decide.raw()];
  const applications = [
    ...(isSame(http1, raw) ? [] : [["'http/1.0'", http1] as const, ["'http/1.1'", http1] as const]),
    ...(isSame(http2, raw) ? [] : [["'h2c'", http2] as const]),
  ];
  const map = { exact_match_map: { map: Object.fromEntries(applications) } };
  const plain = applications.length === 0 ? raw : nested(tree(input('ApplicationProtocolInput'), map, raw));
  if (isSame(tls, plain)) return plain;
  const transports = { exact_match_map: { map: { tls, raw_buffer: plain } } };
  return nested(tree(input('TransportProtocolInput'), transports, fallback));
}

function nameTree(table: ClassTable, use: UseChain, otherwise: JsonObject): JsonObject {
  if (!hasNames(table)) return otherwise;
  const entries = [
    ...table.names.map(({ name, target }) => ({ domain: name, target })),
    ...table.wildcards.map(({ suffix, target }) => ({ domain: `*${suffix}`, target })),
  ];
  const matchers = byTarget(entries).map(([target, group]) => ({
    domains: group.map(({ domain }) => domain),
    on_match: leadTo(use(bytesTo(target))),
  }));
  const custom = { '@type': `${xdsMatcher}.ServerNameMatcher`, domain_matchers: matchers };
  const match = { custom_match: { name: 'sni', typed_config: custom } };
  return nested(tree(input('ServerNameInput'), match, otherwise));
}

function rangeTree(tables: PortTables, one: SpeechClass, use: UseChain, fallback: JsonObject): JsonObject {
  const { port } = tables;
  const table = tables.classes[one];
  const httpClass: HttpClass | undefined = isHttp(one) ? one : undefined;
  const looksAtHost = httpClass !== undefined && hasNames(table);
  const lead = (target: Target) => {
    const isRequests = httpClass !== undefined && (looksAtHost || target.speech !== 'bytes');
    return leadTo(use(isRequests ? { kind: 'requests', port, httpClass, target } : bytesTo(target)));
  };
  const entries = byTarget(table.ranges).map(([target, group]) => ({
    ranges: group.map(({ range }) => range),
    onMatch: lead(target),
  }));
  const otherwise = looksAtHost ? leadTo(use({ kind: 'requests', port, httpClass })) : fallback;
  return ipTree(entries, otherwise);
}

function bytesTo(target: Target): ChainUse {
  return target.destination.kind === 'closed' ? { kind: 'blackhole' } : { kind: 'bytes', target };
}

function isHttp(one: SpeechClass): one is HttpClass {
  return one === 'http1' || one === 'http2';
}

/** Both are in the same order, and what raw has the others have too. */
function hasSameRanges(table: ClassTable, raw: ClassTable): boolean {
  if (table.ranges.length !== raw.ranges.length) return false;
  return table.ranges.every(({ target }, at) => target === raw.ranges[at]!.target);
}

interface RangeEntry {
  readonly ranges: readonly IpRange[];
  readonly onMatch: JsonObject;
}

function ipTree(entries: readonly RangeEntry[], otherwise: JsonObject): JsonObject {
  if (entries.length === 0) return otherwise;
  const matchers = entries.map(({ ranges, onMatch }) => ({ ranges: ranges.map(cidr), on_match: onMatch }));
  const custom = { '@type': `${xdsMatcher}.IPMatcher`, range_matchers: matchers };
  return nested(tree(input('DestinationIPInput'), { custom_match: { name: 'ip', typed_config: custom } }, otherwise));
}

function cidr(range: IpRange): JsonObject {
  const address = formatIp({ family: range.family, value: range.first });
  return { address_prefix: address, prefix_len: prefixLength(range) };
}

function tree(what: JsonObject, how: JsonObject, otherwise: JsonObject): JsonObject {
  return { matcher_tree: { input: what, ...how }, on_no_match: otherwise };
}

function nested(matcher: JsonObject): JsonObject {
  return { matcher };
}

function byTarget<T extends { readonly target: Target }>(entries: readonly T[]): [Target, T[]][] {
  const groups = Map.groupBy(entries, ({ target }) => target);
  return [...groups].sort(([one], [other]) => compareText(one.name, other.name));
}

function isSame(one: JsonObject, other: JsonObject): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
