// Reads our table from the JSON of `nft -j list`, and compares it with the plan. Pure.

import { formatIp, parseIp } from '../../base/net/ip.ts';
import type { Element } from './port-plan.ts';
import type { Ruleset } from './ruleset.ts';
import type { PresentTable } from './script.ts';
import { fixedChains, pickRules, type TableOptions } from './table.ts';

interface KernelTable extends PresentTable {
  /** `MAP KEY` to value; those of affinity maps are left out. */
  readonly elements: ReadonlyMap<string, string>;
  /** By chain, in order: each rule in the kernel's own form. */
  readonly rules: ReadonlyMap<string, readonly string[]>;
}

interface Listed {
  readonly table?: string;
  readonly family?: string;
  readonly name?: string;
  readonly chain?: string;
  readonly elem?: readonly unknown[];
  readonly expr?: unknown;
}

/** What a table is to hold. */
export interface TablePlan {
  /** With its family, which is `inet`. */
  readonly name: string;
  /** Maps and sets whose elements are part of the plan. */
  readonly tracked: ReadonlySet<string>;
  /** Those whose elements are the kernel's own. */
  readonly untracked: ReadonlySet<string>;
  /** By chain, as we write them. */
  rules(): ReadonlyMap<string, readonly string[]>;
  elements(): Iterable<Element>;
}

/** Undefined if there is no such table. */
export function readTable(json: string, plan: Pick<TablePlan, 'name' | 'tracked'>): KernelTable | undefined {
  const table = plan.name.replace(/^inet /, '');
  const { nftables = [] } = JSON.parse(json) as { nftables?: readonly Record<string, Listed>[] };
  const chains: string[] = [];
  const maps: string[] = [];
  const sets: string[] = [];
  const elements = new Map<string, string>();
  const rules = new Map<string, string[]>();
  let isThere = false;
  for (const object of nftables) {
    const [kind, listed] = Object.entries(object)[0] ?? [];
    if (listed?.family !== 'inet') continue;
    if (kind === 'table' && listed.name === table) isThere = true;
    if (listed.table !== table) continue;
    if (kind === 'chain') chains.push(listed.name!);
    if (kind === 'map') maps.push(listed.name!);
    if (kind === 'set') sets.push(listed.name!);
    if (kind === 'rule') rules.set(listed.chain!, [...(rules.get(listed.chain!) ?? []), formOf(listed.expr)]);
    if ((kind === 'map' || kind === 'set') && plan.tracked.has(listed.name!))
      for (const element of listed.elem ?? []) addElement(elements, listed.name!, element);
  }
  return isThere ? { chains, maps, sets, elements, rules } : undefined;
}

/** Without what packets have counted. */
function formOf(expression: unknown): string {
  return JSON.stringify(expression).replace(/"counter":\s*\{[^}]*\}/g, '"counter":null');
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

/** The rules that the plan has in each chain, as we write them. */
export function plannedRules(ruleset: Ruleset, options: TableOptions): Map<string, readonly string[]> {
  const planned = new Map<string, readonly string[]>(fixedChains(options).map(({ name, rules }) => [name, rules]));
  for (const name of ruleset.chains()) planned.set(name, pickRules(name));
  return planned;
}

/** A chain that nothing leads to: what the kernel makes of rules is read from it. */
export const formsChain = 'forms';

/** From the text of a rule to the form that the kernel gives it, learned from `formsChain`, where they stood in this order. */
export function learnForms(
  kernel: KernelTable | undefined,
  texts: readonly string[],
  forms: Map<string, string>,
): void {
  const found = kernel?.rules.get(formsChain) ?? [];
  if (found.length === texts.length) for (const [at, text] of texts.entries()) forms.set(text, found[at]!);
}

/**
 * In words; empty if the kernel holds what was planned. At most twenty are named. Rules whose form is not known are only
 * counted.
 */
export function differences(
  kernel: KernelTable | undefined,
  plan: TablePlan,
  forms: ReadonlyMap<string, string> = new Map(),
): string[] {
  if (kernel === undefined) return ['the table is not there'];
  const found: string[] = [];
  const note = (line: string) => {
    if (found.length < differencesMax) found.push(line);
  };
  const planned = plan.rules();
  for (const name of kernel.chains) if (!planned.has(name) && name !== formsChain) note(`chain ${name} is not planned`);
  for (const [name, texts] of planned) {
    const rules = kernel.rules.get(name) ?? [];
    if (!kernel.chains.includes(name)) note(`chain ${name} is missing`);
    else if (rules.length !== texts.length) note(`chain ${name} has ${rules.length} rules in place of ${texts.length}`);
    else {
      const at = texts.findIndex((text, index) => forms.has(text) && forms.get(text) !== rules[index]);
      if (at >= 0) note(`rule ${at + 1} of chain ${name} is another one than ${texts[at]}`);
    }
  }
  for (const name of [...kernel.maps, ...kernel.sets])
    if (!plan.tracked.has(name) && !plan.untracked.has(name)) note(`map or set ${name} is not planned`);
  noteElements(kernel.elements, plan.elements(), note);
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
