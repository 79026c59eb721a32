// The rules sorted into tables, by port and by what a connection speaks: who decides for a virtual IP, for a name, for a
// range. Each key is there once, with its winner. Pure; the order of the input never matters.

import { formatIp, type IpRange } from '../../base/net/ip.ts';
import type { Protocol } from '../kinds/mesh-external-service.ts';
import { speaks, type Transport } from './choose.ts';
import { formatRange } from './overlaps.ts';
import { byPrecedence, compareText } from './rule.ts';
import type { Target, TargetedRule } from './target.ts';

/** Protocol classes of a connection that rules tell apart. */
export const speechClasses = ['tls', 'http1', 'http2', 'raw'] as const;
export type SpeechClass = (typeof speechClasses)[number];

export interface PortTables {
  readonly port: number;
  /** Nothing about its names and ranges needs a look at the client's first bytes: all of them are tcp. */
  readonly isPlain: boolean;
  /** By address; each decides alone for its address. */
  readonly vips: readonly VipTable[];
  readonly classes: Readonly<Record<SpeechClass, ClassTable>>;
}

export interface VipTable {
  readonly address: string;
  /** All its rules are tcp. */
  readonly isPlain: boolean;
  readonly targets: Readonly<Partial<Record<SpeechClass, Target>>>;
}

export interface ClassTable {
  readonly names: readonly { readonly name: string; readonly target: Target }[];
  /** `.example.com` */
  readonly wildcards: readonly { readonly suffix: string; readonly target: Target }[];
  readonly ranges: readonly { readonly range: IpRange; readonly target: Target }[];
}

const transports: Readonly<Record<SpeechClass, Transport>> = {
  tls: { kind: 'tls' },
  http1: { kind: 'plain', application: 'http1' },
  http2: { kind: 'plain', application: 'http2' },
  raw: { kind: 'plain' },
};

function isSpoken(one: SpeechClass, protocol: Protocol): boolean {
  return speaks(transports[one], protocol);
}

export function tablesOf(rules: readonly TargetedRule[]): PortTables[] {
  const byPort = Map.groupBy(rules.toSorted(byPrecedence), ({ port }) => port);
  return [...byPort].sort(([one], [other]) => one - other).map(([port, ofPort]) => tablesOfPort(port, ofPort));
}

/** `rules` begin with the one that wins between equals. */
function tablesOfPort(port: number, rules: readonly TargetedRule[]): PortTables {
  const tableOf = (one: SpeechClass) => classTable(rules.filter(({ protocol }) => isSpoken(one, protocol)));
  return {
    port,
    isPlain: rules.every(({ match, protocol }) => match.kind === 'vip' || protocol === 'tcp'),
    vips: vipTables(rules),
    classes: { tls: tableOf('tls'), http1: tableOf('http1'), http2: tableOf('http2'), raw: tableOf('raw') },
  };
}

function vipTables(rules: readonly TargetedRule[]): VipTable[] {
  const tables = new Map<string, { isPlain: boolean; targets: Partial<Record<SpeechClass, Target>> }>();
  for (const { match, protocol, target } of rules) {
    if (match.kind !== 'vip') continue;
    for (const address of match.addresses.map(formatIp)) {
      const table = tables.get(address) ?? { isPlain: true, targets: {} };
      tables.set(address, table);
      if (protocol !== 'tcp') table.isPlain = false;
      for (const one of speechClasses) if (isSpoken(one, protocol)) table.targets[one] ??= target;
    }
  }
  return [...tables].sort(byKey).map(([address, table]) => ({ address, ...table }));
}

function classTable(rules: readonly TargetedRule[]): ClassTable {
  const names = new Map<string, Target>();
  const wildcards = new Map<string, Target>();
  const ranges = new Map<string, { range: IpRange; target: Target }>();
  for (const { match, target } of rules) {
    if (match.kind === 'name' && !names.has(match.name)) names.set(match.name, target);
    if (match.kind === 'wildcard' && !wildcards.has(match.suffix)) wildcards.set(match.suffix, target);
    if (match.kind !== 'range') continue;
    const key = formatRange(match.range);
    if (!ranges.has(key)) ranges.set(key, { range: match.range, target });
  }
  return {
    names: [...names].sort(byKey).map(([name, target]) => ({ name, target })),
    wildcards: [...wildcards].sort(byKey).map(([suffix, target]) => ({ suffix, target })),
    ranges: [...ranges].sort(byKey).map(([, entry]) => entry),
  };
}

function byKey<T>([one]: readonly [string, T], [other]: readonly [string, T]): number {
  return compareText(one, other);
}

/** Whether Host decides for requests of this class on this port. */
export function hasNames({ names, wildcards }: ClassTable): boolean {
  return names.length > 0 || wildcards.length > 0;
}
