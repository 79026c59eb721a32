import { describe, expect, test } from 'vitest';
import type { Asker } from './expectations.ts';
import { allFaults, type Fault, nameOf } from './faults.ts';
import { Machine } from './machine.ts';
import { type MadeFault, Model } from './model.ts';
import { schedule } from './schedule.ts';

const dnsFrozen: Fault = { part: 'dns west', kind: 'frozen' };
const told = 'PTL0501 dns on [west]';

/** The fault is made at 100 s. */
function modelOf(fault: Fault, mendedMs = Number.POSITIVE_INFINITY): { model: Model; made: MadeFault } {
  const model = new Model();
  for (const asker of ['status@west', 'status@east', 'dashboard', 'dns@west'] as const) model.learn(asker, []);
  const made = { fault, beganMs: 99_900, madeMs: 100_000, mendingMs: mendedMs, mendedMs };
  model.begin(made);
  return { model, made };
}

const answer = (asker: Asker, askedSeconds: number, ...says: string[]) => ({
  ...{ asker, says },
  askedMs: askedSeconds * 1000,
  answeredMs: askedSeconds * 1000 + 100,
});

describe('model', () => {
  test.each([
    ['it says nothing after 14 s', 114, [], []],
    ['it says nothing after 16 s', 116, [], ['false fine']],
    ['it says something else after 16 s', 116, ['PTL0902 proxy on [west]'], ['false fine', 'false alarm']],
    ['it tells it after 16 s', 116, [told], []],
    ['it tells it of another cluster', 116, ['PTL0501 dns on [east]'], ['false fine', 'false alarm']],
  ] as const)('model: a frozen resolver, %s -> judged', (_what, seconds, says, kinds) => {
    const { model } = modelOf(dnsFrozen);
    expect(model.judge(answer('status@west', seconds, ...says)).map(({ kind }) => kind)).toEqual(kinds);
  });

  test('model: an asker that cannot know of it -> need not tell, and may not tell', () => {
    const { model } = modelOf(dnsFrozen);
    expect(model.judge(answer('status@east', 120))).toEqual([]);
    expect(model.judge(answer('status@east', 120, 'PTL0501 dns on [east]'))).toMatchObject([{ kind: 'false alarm' }]);
  });

  test('model: mended at 130 s -> the line has until 160 s to go', () => {
    const { model } = modelOf(dnsFrozen, 130_000);
    expect(model.judge(answer('status@west', 159, told))).toEqual([]);
    expect(model.judge(answer('status@west', 161, told))).toMatchObject([
      { kind: 'false alarm', text: `it says ${told}, and nothing is wrong` },
    ]);
    expect(model.tellings[0]!.goneMs.get('status@west')).toBe(31_000);
  });

  test('model: the home away as well -> nothing is demanded until 15 s after it is back', () => {
    const { model } = modelOf(dnsFrozen);
    const away = { beganMs: 105_000, madeMs: 105_000, mendingMs: 130_000, mendedMs: 130_000 };
    model.begin({ fault: { part: 'home west', kind: 'killed' }, ...away });
    expect(model.judge(answer('status@west', 144))).toEqual([]);
    expect(model.judge(answer('status@west', 146))).toMatchObject([{ kind: 'false fine' }]);
  });

  test('model: what is always wrong -> must always be told, and is told by nobody for a new reason', () => {
    const model = new Model();
    const conflict = 'PTL0302 ServiceExport shop/cart [west]';
    model.learn('status@west', [conflict]);
    expect(model.judge(answer('status@west', 10, conflict))).toEqual([]);
    expect(model.judge(answer('status@west', 11))).toMatchObject([{ kind: 'missing' }]);
  });

  test('model: a question that takes 16 s -> no answer', () => {
    const model = new Model();
    model.learn('status@west', []);
    const late = { asker: 'status@west' as const, askedMs: 0, answeredMs: 16_000, says: [] };
    expect(model.judge(late)).toMatchObject([{ kind: 'no answer' }]);
  });

  test('model: the machine let no program run -> nothing is judged then and 30 s after it, everything later', () => {
    const model = new Model(undefined, () => [{ fromMs: 100_000, toMs: 104_000 }]);
    model.learn('status@west', []);
    const verdicts = [99, 101, 133, 135].map((second) => model.judge(answer('status@west', second, told)).length);
    expect([verdicts, model.unjudged]).toEqual([[1, 0, 0, 1], 2]);
    model.begin({ fault: dnsFrozen, beganMs: 99_000, madeMs: 100_000, mendingMs: 200_000, mendedMs: 200_000 });
    expect(model.judge(answer('status@west', 120, told))).toEqual([]);
    expect([...model.tellings[0]!.toldMs]).toEqual([['status@west', 20_000]]);
  });

  test('model: when each asker told it first -> since the fault was made', () => {
    const { model } = modelOf(dnsFrozen);
    model.judge(answer('status@west', 105));
    model.judge(answer('status@west', 112, told));
    model.judge(answer('status@west', 113, told));
    expect([...model.tellings[0]!.toldMs]).toEqual([['status@west', 12_000]]);
  });
});

test('schedule: a seed -> the same turns again, and every fault once before one comes again', () => {
  const turns = (seed: number) => {
    const source = schedule(allFaults, seed);
    return Array.from({ length: 100 }, () => source.next().value);
  };
  expect(turns(7)).toEqual(turns(7));
  expect(turns(7)).not.toEqual(turns(8));
  const firstOnes = turns(7).flatMap(({ faults }) => faults.map(({ fault }) => fault));
  expect(new Set(firstOnes.slice(0, allFaults.length).map(nameOf)).size).toBeGreaterThan(allFaults.length - 3);
});

test('machine: a program that gets a processor -> not starved; a bound that nobody meets -> starved all the time', async () => {
  const [usual, never] = [new Machine(1_000), new Machine(0)];
  for (let look = 0; look < 200 && (never.starved[0]?.toMs ?? 0) - (never.starved[0]?.fromMs ?? 0) < 1_000; look += 1)
    await new Promise((resolve) => setTimeout(resolve, 50));
  for (const one of [usual, never]) one.stop();
  expect(usual.starved).toEqual([]);
  expect(never.starved).toHaveLength(1);
  expect(never.slowest).toBeGreaterThan(0);
});
