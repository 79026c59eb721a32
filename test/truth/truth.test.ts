// A short run of `npm run check:truth`: three faults at the same time, which do not hide each other.

import { expect, test } from 'vitest';
import type { Asker } from './expectations.ts';
import { type Fault, nameOf } from './faults.ts';
import { reportText } from './report.ts';
import { runTruth } from './run.ts';

const faults: readonly Fault[] = [
  { part: 'home east', kind: 'killed' },
  { part: 'dns west', kind: 'frozen' },
  { part: 'authority', kind: 'cut off' },
];

/** Two clusters disagree about a service, and two have no proxy. */
const usual: Partial<Record<Asker, readonly string[]>> = {
  dashboard: [
    ...['PTL0302 ServiceExport shop/cart [east west]', 'PTL0903 2 ServiceImports [east]'],
    ...['PTL0903 2 ServiceImports [south]', 'service shop/cart is conflict', 'service shop/checkout is limited'],
  ],
  'conditions@east': notCarried(),
  'conditions@south': notCarried(),
  'doctor@east': conflictAtEast(),
  'status@east': conflictAtEast(),
  'doctor@west': ['PTL0302 ServiceExport shop/cart [west]'],
  'status@west': ['PTL0302 ServiceExport shop/cart [west]'],
  'doctor@south': ['PTL0903 2 ServiceImports [south]'],
  'status@south': ['PTL0903 2 ServiceImports [south]'],
};

function notCarried(): string[] {
  return ['cart', 'checkout'].map((service) => `ServiceImport shop/${service} Ready=False NotCarried`);
}

function conflictAtEast(): string[] {
  return [
    'PTL0302 ServiceExport shop/cart [east]',
    'PTL0507 Service shop/cart [east]',
    'PTL0903 2 ServiceImports [east]',
  ];
}

test('truth: a home killed, a resolver frozen, an authority cut off -> told by everybody concerned within 15 s, and by nobody afterwards', async () => {
  const turn = { faults: faults.map((fault) => ({ fault, afterMs: 0 })), holdMs: 20_000, restMs: 0, size: 0 };
  const shortened = { usual, mendsWhenTold: true, hasPeers: false };
  const result = await runTruth({ seed: 1, lastsMs: 60_000, turns: [turn], say: () => {}, ...shortened });
  const { model } = result;
  expect(result.violations, reportText(result).join('\n')).toEqual([]);
  for (const { made, toldMs } of model.tellings) {
    const concerned = model.concernedBy(made);
    expect([...toldMs.keys()], nameOf(made.fault)).toEqual(expect.arrayContaining([...concerned]));
    expect(concerned.length).toBeGreaterThan(2);
  }
}, 240_000);
