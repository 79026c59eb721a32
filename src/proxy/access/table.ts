// The table that refuses calls which no export allows, as nft text. Pure.
//
// Packets of known connections pass first. Others to our Pods go to the chain of the cluster that they come from.

import type { PresentTable } from '../nft/script.ts';
import { elementLines, text } from '../nft/script.ts';
import { chainOf, setOf, accessTableName as table } from './names.ts';
import type { AccessConfig, AccessPlan, PlanDifference } from './plan.ts';

const versions = [4, 6] as const;
const protocols = ['tcp', 'udp', 'sctp'] as const;

interface Declaration {
  readonly kind: 'set' | 'map';
  readonly name: string;
  readonly body: string;
}

const seenBody = 'flags dynamic,timeout; size 16384; timeout 10m; counter;';

/** Connections that were refused, or would be. */
export const seenSets = ['seen4', 'seen6'] as const;

export function declarations({ clusters }: AccessConfig): Declaration[] {
  return versions.flatMap((version) => {
    const address = version === 4 ? 'ipv4_addr' : 'ipv6_addr';
    const tuple = `type ${address} . inet_proto . inet_service;`;
    return [
      ...['mine', 'closed'].map((name) => {
        return { kind: 'set' as const, name: `${name}${version}`, body: `type ${address}; flags interval;` };
      }),
      { kind: 'map', name: `from${version}`, body: `type ${address} : verdict; flags interval;` } as const,
      ...['host', 'every', ...clusters.map(setOf)].map((name) => {
        return { kind: 'set' as const, name: `${name}${version}`, body: tuple };
      }),
      {
        kind: 'set',
        name: `seen${version}`,
        body: `type ${address} . ${address} . inet_proto . inet_service; ${seenBody}`,
      } as const,
    ];
  });
}

const hooks: Readonly<Record<string, string>> = {
  forward: 'type filter hook forward priority -5; policy accept;',
  input: 'type filter hook input priority -5; policy accept;',
};

/** By chain, in an order in which each chain is there before another leads to it. */
export function accessRules({ mode, clusters }: AccessConfig): Map<string, readonly string[]> {
  const ips = versions.map((version) => ({ version, ip: version === 4 ? 'ip' : 'ip6' }));
  const ways = ['ct state established,related accept', 'jump check'];
  const from = (sets: readonly string[]) => [
    ...ips.flatMap(({ version, ip }) =>
      sets.map((set) => `${ip} daddr . meta l4proto . th dport @${set}${version} accept`),
    ),
    'goto refuse',
  ];
  const counted = ips.flatMap(({ version, ip }) =>
    protocols.map((protocol) => {
      const key = `${ip} saddr . ${ip} daddr . meta l4proto . th dport`;
      return `meta l4proto ${protocol} update @seen${version} { ${key} }`;
    }),
  );
  const refusing = ['meta l4proto tcp reject with tcp reset', 'reject with icmpx admin-prohibited'];
  return new Map<string, readonly string[]>([
    ['refuse', mode === 'Exported' ? [...counted, ...refusing] : counted],
    [chainOf(''), from(['every'])],
    ...clusters.map((id) => [chainOf(id), from(['every', setOf(id)])] as const),
    [
      'check',
      ips.flatMap(({ version, ip }) => [
        `${ip} daddr @mine${version} counter ${ip} saddr vmap @from${version}`,
        `${ip} daddr . meta l4proto . th dport @host${version} ${ip} saddr vmap @from${version}`,
        `${ip} daddr @mine${version} ${ip} saddr @closed${version} ${ip} saddr != @mine${version} goto refuse`,
      ]),
    ],
    ['forward', ways],
    ['input', ways],
  ]);
}

export function changeScript({ added, deleted }: PlanDifference): string {
  return text([...elementLines(table, 'delete', deleted), ...elementLines(table, 'add', added)]);
}

/** The table without effect: intervals that lead to a chain of the same transaction are refused by nft 1.0.6. */
export function declareScript(config: AccessConfig): string {
  return text([
    `add table ${table}`,
    ...declarations(config).map(({ kind, name, body }) => `add ${kind} ${table} ${name} { ${body} }`),
    ...[...accessRules(config).keys()].map(
      (name) => `add chain ${table} ${name}${hooks[name] ? ` { ${hooks[name]} }` : ''}`,
    ),
  ]);
}

/** Everything that was declared, in one transaction, whatever of ours is there. What was counted stays. */
export function accessRefill(plan: AccessPlan, present: PresentTable | undefined): string {
  const declared = declarations(plan.config);
  const rules = accessRules(plan.config);
  const names = new Set(declared.map(({ name }) => name));
  const fixed = declared.filter(({ name }) => !seenSets.some((seen) => seen === name));
  return text([
    `flush table ${table}`,
    ...fixed.map(({ kind, name }) => `flush ${kind} ${table} ${name}`),
    ...(present?.chains ?? []).filter((name) => !rules.has(name)).map((name) => `delete chain ${table} ${name}`),
    ...(present?.maps ?? []).filter((name) => !names.has(name)).map((name) => `delete map ${table} ${name}`),
    ...(present?.sets ?? []).filter((name) => !names.has(name)).map((name) => `delete set ${table} ${name}`),
    ...[...rules].flatMap(([name, lines]) => lines.map((rule) => `add rule ${table} ${name} ${rule}`)),
    ...elementLines(table, 'add', plan.elements()),
  ]);
}

/** Also where there is none. */
export const removeAccessScript = `add table ${table}\ndelete table ${table}\n`;
