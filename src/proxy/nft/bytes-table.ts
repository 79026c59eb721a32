// Counters of the bytes of all packets of connections to clusterset addresses, by address, endpoint and port, in both directions. In a
// small table of its own, which is read as a whole. Pure.

import { formatRange, type IpRange } from '../../base/net/ip.ts';
import type { CounterLayout } from './counter-table.ts';

const tableName = 'inet portolan-bytes';
export const bytesTable: readonly string[] = tableName.split(' ');

export interface ByteCounts {
  /** By clients. */
  readonly sent: number;
  readonly received: number;
}

/** In place of a key: packets of elements that the sets had no room for. */
export const noRoomKey = 'no-room';

const versions = [4, 6] as const;
const elementsMax = 65_536;
/** Beyond it new sets are used: elements of endpoints that have gone are forgotten. */
const turnAt = 40_000;

/** Also where there is none. */
export const removeBytesScript = `add table ${tableName}\ndelete table ${tableName}\n`;

/**
 * Elements do not time out: one that began again between two looks would not be told from one that goes on. Before the sets are full, the
 * rules change to new ones in one transaction. The old ones are read once more and deleted.
 */
export class BytesLayout implements CounterLayout<ByteCounts> {
  readonly removeScript = removeBytesScript;
  readonly #turnAt: number;
  #generation = 1;
  #isOldRead = true;

  constructor({ turnAt: at = turnAt } = {}) {
    this.#turnAt = at;
  }

  script(ranges: readonly IpRange[]): string {
    const now = this.#generation;
    const gone = this.#isOldRead && now > 1 ? setNames(now - 1) : [];
    const lines = [
      `add table ${tableName}`,
      ...setNames(now).map((name) => `add set ${tableName} ${name} { ${setBody(name)} }`),
      ...versions.flatMap((version) => [
        `add chain ${tableName} count${version}`,
        `flush chain ${tableName} count${version}`,
        ...bytesRules(version, now).map((rule) => `add rule ${tableName} count${version} ${rule}`),
      ]),
      ...['prerouting', 'output'].flatMap((hook) => [
        // After the translation of addresses, so that packets name the endpoint.
        `add chain ${tableName} ${hook} { type filter hook ${hook} priority -89; policy accept; }`,
        `flush chain ${tableName} ${hook}`,
        // Those between processes of this node have passed the other hook already.
        ...(hook === 'prerouting' ? [`add rule ${tableName} ${hook} iifname "lo" accept`] : []),
        ...ranges.map((range) => `add rule ${tableName} ${hook} ${ofRange(range)}`),
      ]),
      // Also where there is none.
      ...gone.flatMap((name) => [
        `add set ${tableName} ${name} { ${setBody(name)} }`,
        `delete set ${tableName} ${name}`,
      ]),
    ];
    return `${lines.join('\n')}\n`;
  }

  /** By `ADDRESS ENDPOINT PORT GENERATION`. */
  read(json: string): ReadonlyMap<string, ByteCounts> {
    const counters = new Map<string, ByteCounts>();
    const add = (key: string, direction: keyof ByteCounts, bytes: number) => {
      const known = counters.get(key) ?? { sent: 0, received: 0 };
      counters.set(key, { ...known, [direction]: known[direction] + bytes });
    };
    const { nftables } = JSON.parse(json) as { nftables?: readonly Listed[] | null };
    let present = 0;
    for (const { set, rule } of nftables ?? []) {
      if (rule !== undefined) countRule(rule.expr ?? [], add);
      const [, direction, generation] = setName.exec(set?.name ?? '') ?? [];
      for (const element of (direction && set?.elem) || []) {
        const { elem } = (element ?? {}) as ListedElement;
        const parts = elem?.val?.concat ?? [];
        const bytes = elem?.counter?.bytes;
        if (typeof bytes !== 'number' || parts.length !== 3) continue;
        if (Number(generation) === this.#generation) present += 1;
        add(`${parts.join(' ')} ${generation}`, direction as keyof ByteCounts, bytes);
      }
    }
    // The sets before these have been read after the rules left them.
    this.#isOldRead = true;
    if (present > this.#turnAt) this.#turn();
    return counters;
  }

  #turn(): void {
    this.#generation += 1;
    this.#isOldRead = false;
  }
}

interface Listed {
  readonly set?: { readonly name?: string; readonly elem?: readonly unknown[] };
  readonly rule?: { readonly expr?: readonly object[] };
}

interface ListedElement {
  readonly elem?: {
    readonly val?: { readonly concat?: readonly unknown[] };
    readonly counter?: { readonly bytes?: unknown };
  };
}

const setName = /^(sent|received)[46]-(\d+)$/;

function setNames(generation: number): string[] {
  return versions.flatMap((version) => ['sent', 'received'].map((name) => `${name}${version}-${generation}`));
}

function setBody(name: string): string {
  const ip = name.includes('4-') ? 'ip' : 'ip6';
  return `typeof ${ip} daddr . ${ip} daddr . th dport; size ${elementsMax}; flags dynamic; counter;`;
}

function ofRange(range: IpRange): string {
  const [ip, version] = range.family === 'IPv4' ? ['ip', 4] : ['ip6', 6];
  return `ct original ${ip} daddr ${formatRange(range)} goto count${version}`;
}

/** To look an element up costs half of an update: only its first packet adds it. Nearly all packets end at the first rules. */
function bytesRules(version: 4 | 6, generation: number): string[] {
  const ip = version === 4 ? 'ip' : 'ip6';
  const [sent, received] = [`@sent${version}-${generation}`, `@received${version}-${generation}`];
  const asked = `ct original ${ip} daddr . ${ip} daddr . th dport`;
  const answering = `ct original ${ip} daddr . ${ip} saddr . th sport`;
  return [
    `ct direction original ${asked} ${sent} accept`,
    `ct direction reply ${answering} ${received} accept`,
    `ct direction original update ${sent} { ${asked} } accept`,
    `ct direction reply update ${received} { ${answering} } accept`,
    'ct direction reply counter accept',
    'ct direction original counter accept',
  ];
}

/** Those of rules without a set. */
function countRule(
  expressions: readonly object[],
  add: (key: string, direction: keyof ByteCounts, bytes: number) => void,
): void {
  const bytes = expressions.map((each) => (each as { counter?: { bytes?: unknown } } | null)?.counter?.bytes);
  const found = bytes.find((each) => typeof each === 'number');
  if (found === undefined || found === 0) return;
  const isReply = JSON.stringify(expressions).includes('"reply"');
  add(noRoomKey, isReply ? 'received' : 'sent', found);
}
