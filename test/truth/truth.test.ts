// A short run of `npm run check:truth`: three faults at the same time, which do not hide each other.

import { expect, test } from 'vitest';
import { type Asker, askers, expectedOf, hides } from './expectations.ts';
import { type Fault, nameOf } from './faults.ts';
import { reportText } from './report.ts';
import { runTruth } from './run.ts';

const faults: readonly Fault[] = [
  { part: 'home east', kind: 'killed' },
  { part: 'dns west', kind: 'frozen' },
  { part: 'authority', kind: 'cut off' },
];

test('truth: a home killed, a resolver frozen, an authority cut off -> told by everybody concerned within 15 s, and by nobody afterwards', async () => {
  const turn = { faults: faults.map((fault) => ({ fault, afterMs: 0 })), holdMs: 20_000, restMs: 500, size: 0 };
  const result = await runTruth({ seed: 1, lastsMs: 60_000, turns: [turn], say: () => {} });
  expect(result.violations, reportText(result).join('\n')).toEqual([]);
  for (const { made, toldMs } of result.model.tellings) {
    const isHidden = (asker: Asker) => faults.some((other) => other !== made.fault && hides(other, made.fault, asker));
    const concerned = askers.filter(
      (asker) => expectedOf(made.fault).some(({ by }) => by.test(asker)) && !isHidden(asker),
    );
    expect([...toldMs.keys()], nameOf(made.fault)).toEqual(expect.arrayContaining(concerned));
    expect(concerned.length).toBeGreaterThan(2);
  }
}, 240_000);
