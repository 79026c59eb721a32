// Counters of TCP connections to clusterset addresses, by address, endpoint and port: attempts, answers, refusals, and resets after an
// answer. In a small table of its own, which is read as a whole. Pure.

import { formatRange, type IpRange } from '../../base/net/ip.ts';
import type { ConnectionCounts } from '../../kube/objects/reports/connections.ts';

const tableName = 'inet portolan-counts';
export const countsTable: readonly string[] = tableName.split(' ');

const versions = [4, 6] as const;
const columns = ['tried', 'answered', 'reset', 'refused'] as const;

/** All of it, whatever is there; counters stay. After the translation of addresses, so that packets name the endpoint. */
export function countsScript(ranges: readonly IpRange[]): string {
  const add = (what: string, text: string) => `add ${what} ${tableName} ${text}`;
  const lines = [
    `add table ${tableName}`,
    ...versions.flatMap((version) => {
      const ip = version === 4 ? 'ip' : 'ip6';
      return [
        ...columns.map((column) =>
          add(
            'set',
            `${column}${version} { typeof ${ip} daddr . ${ip} daddr . tcp dport; size 65536; flags dynamic,timeout; timeout 2m; counter; }`,
          ),
        ),
        add('chain', `count${version}`),
        `flush chain ${tableName} count${version}`,
        ...countRules(version).map((rule) => add('rule', `count${version} ${rule}`)),
      ];
    }),
    ...['prerouting', 'output'].flatMap((hook) => [
      add('chain', `${hook} { type filter hook ${hook} priority -90; policy accept; }`),
      `flush chain ${tableName} ${hook}`,
      // Those between processes of this node have passed the other hook already.
      ...(hook === 'prerouting' ? [add('rule', `${hook} iifname "lo" accept`)] : []),
      // Most packets are in the middle of a connection.
      add('rule', `${hook} tcp flags & (syn|rst) == 0x0 accept`),
      add('rule', `${hook} meta l4proto != tcp accept`),
      ...ranges.map((range) => add('rule', `${hook} ${ofRange(range)}`)),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

function ofRange(range: IpRange): string {
  const [ip, version] = range.family === 'IPv4' ? ['ip', 4] : ['ip6', 6];
  return `ct original ${ip} daddr ${formatRange(range)} goto count${version}`;
}

/** Also where there is none. */
export const removeCountsScript = `add table ${tableName}\ndelete table ${tableName}\n`;

function countRules(version: 4 | 6): string[] {
  const ip = version === 4 ? 'ip' : 'ip6';
  const asked = `{ ct original ${ip} daddr . ${ip} daddr . tcp dport }`;
  const answering = `{ ct original ${ip} daddr . ${ip} saddr . tcp sport }`;
  return [
    `tcp flags & (syn|ack) == syn ct direction original update @tried${version} ${asked} accept`,
    `tcp flags & (syn|ack) == (syn|ack) ct direction reply update @answered${version} ${answering} accept`,
    // A first packet that is refused is answered with the number 0.
    `tcp flags & rst == rst tcp sequence != 0 ct direction reply update @reset${version} ${answering} accept`,
    `tcp flags & rst == rst ct direction reply update @refused${version} ${answering}`,
  ];
}

export interface EndpointCounts extends ConnectionCounts {
  /** Attempts that were answered with a reset. */
  readonly refused: number;
}

/** By `ADDRESS ENDPOINT PORT`. */
export type KernelCounters = ReadonlyMap<string, EndpointCounts>;

interface Listed {
  readonly set?: { readonly name?: string; readonly elem?: readonly unknown[] };
}

/** From `nft -j list table`; what is not understood is left out. */
export function readCounters(json: string): KernelCounters {
  const counters = new Map<string, Record<keyof EndpointCounts, number>>();
  const { nftables } = JSON.parse(json) as { nftables?: readonly Listed[] | null };
  for (const { set } of nftables ?? []) {
    const column = columns.find((name) => set?.name === `${name}4` || set?.name === `${name}6`);
    for (const element of (column && set?.elem) ?? []) {
      const { elem } = (element ?? {}) as {
        elem?: { val?: { concat?: readonly unknown[] }; counter?: { packets?: unknown } };
      };
      const packets = elem?.counter?.packets;
      const parts = elem?.val?.concat ?? [];
      if (typeof packets !== 'number' || parts.length !== 3) continue;
      const key = parts.join(' ');
      const counts = counters.get(key) ?? { tried: 0, answered: 0, reset: 0, refused: 0 };
      counts[column!] = packets;
      counters.set(key, counts);
    }
  }
  return counters;
}
