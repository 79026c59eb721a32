// What is found when the kernel holds as many rules as were planned, and one of them is another.

import { expect, test } from 'vitest';
import { differences, formsChain, learnForms, readTable, type TablePlan } from './read-back.ts';

const planned = ['ip daddr @ranges goto services', 'counter reject'];
const plan: TablePlan = {
  name: 'inet portolan',
  tracked: new Set(),
  untracked: new Set(),
  rules: () => new Map([['pre', planned]]),
  elements: () => [],
};
const chain = (name: string) => ({ chain: { family: 'inet', table: 'portolan', name } });
const rule = (of: string, expr: unknown) => ({ rule: { family: 'inet', table: 'portolan', chain: of, expr } });
const goto = { goto: { target: 'services' } };
const reject = (packets: number) => [{ counter: { packets, bytes: 0 } }, { reject: null }];

/** The table as `nft -j` shows it, with the chain by which the form of rules is learned. */
function tableWith(...rules: unknown[]) {
  const shown = [rule(formsChain, goto), rule(formsChain, reject(0))];
  const own = rules.map((expr) => rule('pre', expr));
  const table = { table: { family: 'inet', name: 'portolan' } };
  return readTable(JSON.stringify({ nftables: [table, chain('pre'), chain(formsChain), ...own, ...shown] }), plan);
}

function found(...rules: unknown[]): string[] {
  const kernel = tableWith(...rules);
  const forms = new Map<string, string>();
  learnForms(kernel, planned, forms);
  return differences(kernel, plan, forms);
}

test.each([
  ['as planned, with packets counted', [goto, reject(7)], []],
  [
    'another verdict in place of a rule',
    [goto, [{ counter: null }, { accept: null }]],
    ['rule 2 of chain pre is another one than counter reject'],
  ],
  ['the order is another', [reject(0), goto], [`rule 1 of chain pre is another one than ${planned[0]}`]],
  ['one is missing', [goto], ['chain pre has 1 rules in place of 2']],
])('read back: %s -> found by its text', (_what, rules, expected) => {
  expect(found(...rules)).toEqual(expected);
});
