// Reads our table from the JSON of `nft -j list`, and compares it with the plan. Pure.

import { formatIp, parseIp } from '../../base/net/ip.ts';
import type { Element } from './port-plan.ts';
import type { Ruleset } from './ruleset.ts';
import type { PresentTable } from './script.ts';
import { affinityMaps, fixedChains, pickRules, planMaps, planSets, type TableOptions } from './table.ts';

interface KernelTable extends PresentTable {
  /** `MAP KEY` to value; those of affinity maps are left out. */
  readonly elements: ReadonlyMap<string, string>;
  readonly ruleCounts: ReadonlyMap<string, number>;
}

interface Listed {
  readonly table?: string;
  readonly family?: string;
  readonly name?: string;
  readonly chain?: string;
  readonly elem?: readonly unknown[];
}

const tracked: ReadonlySet<string> = new Set([...planMaps, ...planSets].map(({ name }) => name));

/** Undefined if there is no such table. */
export function readTable(json: string): KernelTable | undefined {
  const { nftables = [] } = JSON.parse(json) as { nftables?: readonly Record<string, Listed>[] };
  const chains: string[] = [];
  const maps: string[] = [];
  const sets: string[] = [];
  const elements = new Map<string, string>();
  const ruleCounts = new Map<string, number>();
  let isThere = false;
  for (const object of nftables) {
    const [kind, listed] = Object.entries(object)[0] ?? [];
    if (listed?.family !== 'inet') continue;
    if (kind === 'table' && listed.name === 'portolan') isThere = true;
    if (listed.table !== 'portolan') continue;
    if (kind === 'chain') chains.push(listed.name!);
    if (kind === 'map') maps.push(listed.name!);
    if (kind === 'set') sets.push(listed.name!);
    if (kind === 'rule') ruleCounts.set(listed.chain!, (ruleCounts.get(listed.chain!) ?? 0) + 1);
    if ((kind === 'map' || kind === 'set') && tracked.has(listed.name!))
      for (const element of listed.elem ?? []) addElement(elements, listed.name!, element);
  }
  return isThere ? { chains, maps, sets, elements, ruleCounts } : undefined;
}

function addElement(elements: Map<string, string>, map: string, element: unknown): void {
  const [key, value] = Array.isArray(element) ? element : [element, ''];
  elements.set(`${map} ${textOf(key)}`, textOf(value));
}

/** As the plan writes it. */
function textOf(value: unknown): string {
  if (typeof value === 'string') {
    const ip = parseIp(value);
    return ip === undefined ? value : formatIp(ip);
  }
  if (typeof value !== 'object' || value === null) return String(value);
  const { concat, goto, range, prefix, elem } = value as {
    concat?: readonly unknown[];
    goto?: { readonly target: string };
    range?: readonly [unknown, unknown];
    prefix?: { readonly addr: string; readonly len: number };
    elem?: { readonly val: unknown };
  };
  if (concat) return concat.map(textOf).join(' . ');
  if (goto) return `goto ${goto.target}`;
  if (range) return `${textOf(range[0])}-${textOf(range[1])}`;
  if (prefix) return prefixText(prefix);
  return elem ? textOf(elem.val) : JSON.stringify(value);
}

/** An interval is a prefix to nft where it can be one; the plan writes its two ends. */
function prefixText({ addr, len }: { readonly addr: string; readonly len: number }): string {
  const ip = parseIp(addr)!;
  const size = 1n << BigInt((ip.family === 'IPv4' ? 32 : 128) - len);
  return `${formatIp(ip)}-${formatIp({ family: ip.family, value: ip.value + size - 1n })}`;
}

const differencesMax = 20;

/** In words; empty if the kernel holds what was planned. At most twenty are named. */
export function differences(kernel: KernelTable | undefined, ruleset: Ruleset, options: TableOptions): string[] {
  if (kernel === undefined) return ['the table is not there'];
  const found: string[] = [];
  const note = (line: string) => {
    if (found.length < differencesMax) found.push(line);
  };
  const rules = new Map(fixedChains(options).map(({ name, rules: lines }) => [name, lines.length]));
  for (const name of ruleset.chains()) rules.set(name, pickRules(name).length);
  for (const name of kernel.chains) if (!rules.has(name)) note(`chain ${name} is not planned`);
  for (const [name, count] of rules) {
    if (!kernel.chains.includes(name)) note(`chain ${name} is missing`);
    else if ((kernel.ruleCounts.get(name) ?? 0) !== count)
      note(`chain ${name} has ${kernel.ruleCounts.get(name) ?? 0} rules in place of ${count}`);
  }
  const wanted = new Set([...planMaps, ...planSets, ...affinityMaps].map(({ name }) => name));
  for (const name of [...kernel.maps, ...kernel.sets]) if (!wanted.has(name)) note(`map or set ${name} is not planned`);
  noteElements(kernel.elements, ruleset.elements(), note);
  return found;
}

function noteElements(
  present: ReadonlyMap<string, string>,
  wanted: Iterable<Element>,
  note: (line: string) => void,
): void {
  let seen = 0;
  const names = new Set<string>();
  for (const { map, key, value } of wanted) {
    const name = `${map} ${key}`;
    const is = present.get(name);
    if (is !== undefined) seen += 1;
    names.add(name);
    if (is === undefined) note(`${name} is missing`);
    else if (is !== value) note(`${name} is ${is} in place of ${value}`);
  }
  if (seen === present.size) return;
  for (const name of present.keys()) if (!names.has(name)) note(`${name} is not planned`);
}
