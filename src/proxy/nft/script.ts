// Transactions as nft text: a difference, the whole table anew, or its removal. Pure.

import type { Element } from './port-plan.ts';
import type { Difference, Ruleset } from './ruleset.ts';
import { affinityMaps, fixedChains, pickRules, planMaps, planSets, type TableOptions, tableName } from './table.ts';

/** Objects that the kernel holds in our table now. */
export interface PresentTable {
  readonly chains: readonly string[];
  readonly maps: readonly string[];
  readonly sets: readonly string[];
}

const elementsPerCommand = 1000;

export function differenceScript({ newChains, oldChains, deleted, added }: Difference): string {
  return text([
    ...newChains.map((name) => `add chain ${tableName} ${name}`),
    ...newChains.flatMap(ruleLines),
    ...elementLines(tableName, 'delete', deleted),
    ...elementLines(tableName, 'add', added),
    ...oldChains.map((name) => `delete chain ${tableName} ${name}`),
  ]);
}

/**
 * Everything as planned, in one transaction, whatever of ours is there. Unwanted contents of the table are removed;
 * the assignments of clients to backends are kept.
 */
export function refillScript(ruleset: Ruleset, options: TableOptions, present: PresentTable | undefined): string {
  const picks = [...ruleset.chains()];
  const fixed = fixedChains(options);
  const chains = new Set([...picks, ...fixed.map(({ name }) => name)]);
  const maps = [...planMaps, ...affinityMaps];
  const surplus = (names: readonly string[] | undefined, wanted: ReadonlySet<string>) =>
    (names ?? []).filter((name) => !wanted.has(name));
  const wantedMaps = new Set(maps.map(({ name }) => name));
  const wantedSets = new Set(planSets.map(({ name }) => name));
  return text([
    `add table ${tableName}`,
    ...maps.map(({ name, body }) => `add map ${tableName} ${name} { ${body} }`),
    ...planSets.map(({ name, body }) => `add set ${tableName} ${name} { ${body} }`),
    ...fixed.map(declaration),
    ...picks.map((name) => `add chain ${tableName} ${name}`),
    // Flushed before anything is removed: what is unused can go.
    `flush table ${tableName}`,
    ...planMaps.map(({ name }) => `flush map ${tableName} ${name}`),
    ...planSets.map(({ name }) => `flush set ${tableName} ${name}`),
    ...surplus(present?.chains, chains).map((name) => `delete chain ${tableName} ${name}`),
    ...surplus(present?.maps, wantedMaps).map((name) => `delete map ${tableName} ${name}`),
    ...surplus(present?.sets, wantedSets).map((name) => `delete set ${tableName} ${name}`),
    ...fixed.flatMap(({ name, rules }) => rules.map((rule) => `add rule ${tableName} ${name} ${rule}`)),
    ...picks.flatMap(ruleLines),
    ...elementLines(tableName, 'add', ruleset.elements()),
  ]);
}

/** Rules in a chain that nothing leads to, so that the kernel's form of them can be read. */
export function formsScript(table: string, chain: string, rules: readonly string[]): string {
  return text([
    `add chain ${table} ${chain}`,
    `flush chain ${table} ${chain}`,
    ...rules.map((rule) => `add rule ${table} ${chain} ${rule}`),
  ]);
}

export function withoutFormsScript(table: string, chain: string): string {
  return text([`flush chain ${table} ${chain}`, `delete chain ${table} ${chain}`]);
}

/** For a table that another version left, whose maps have other types. */
export function replaceScript(ruleset: Ruleset, options: TableOptions): string {
  return `add table ${tableName}\ndelete table ${tableName}\n${refillScript(ruleset, options, undefined)}`;
}

/** Instead of everything: packets to our addresses are refused. */
export function drainScript(options: TableOptions): string {
  const chains = fixedChains(options).filter(({ name }) => ['refuse', 'left', 'left-pre', 'left-out'].includes(name));
  return text([
    `add table ${tableName}`,
    `delete table ${tableName}`,
    `add table ${tableName}`,
    ...chains.map(declaration),
    ...chains.flatMap(({ name, rules }) => rules.map((rule) => `add rule ${tableName} ${name} ${rule}`)),
  ]);
}

function declaration({ name, hook }: { readonly name: string; readonly hook?: string }): string {
  return `add chain ${tableName} ${name}${hook === undefined ? '' : ` { ${hook} }`}`;
}

function ruleLines(name: string): string[] {
  return pickRules(name).map((rule) => `add rule ${tableName} ${name} ${rule}`);
}

export function elementLines(table: string, verb: 'add' | 'delete', elements: Iterable<Element>): string[] {
  const byMap = Map.groupBy(elements, ({ map }) => map);
  const lines: string[] = [];
  for (const [map, members] of byMap) {
    const texts = members.map(({ key, value }) => (verb === 'delete' || value === '' ? key : `${key} : ${value}`));
    for (let at = 0; at < texts.length; at += elementsPerCommand) {
      const part = texts.slice(at, at + elementsPerCommand).join(', ');
      lines.push(`${verb} element ${table} ${map} { ${part} }`);
    }
  }
  return lines;
}

export function text(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}
