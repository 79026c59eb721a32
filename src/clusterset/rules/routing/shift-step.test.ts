import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ConnectionCounts } from '../../../kube/objects/reports/connections.ts';
import { firstState, hasEnded, type ShiftOutcome, type ShiftPlan, type Sight, stepShift } from './shift-step.ts';

const plan: ShiftPlan = {
  to: 'west',
  steps: [5, 25, 50, 100],
  everySeconds: 60,
  maxWorse: 2,
  minConnections: 50,
  isPaused: false,
  isAborted: false,
};

const counts = (tried: number, failed = 0): ConnectionCounts => ({ tried, answered: tried - failed, reset: 0 });
const sight = (to: ConnectionCounts, all = to): Sight => ({ seconds: 10, isReported: true, to, all });
const calm = sight(counts(10), counts(200));

/** So many looks, ten seconds apart. */
function run(looks: number, from: ShiftOutcome | undefined, seen: Sight, by: Partial<ShiftPlan> = {}): ShiftOutcome {
  let outcome = from ?? { state: firstState, reason: 'Measuring', message: '' };
  for (let look = 0; look < looks; look += 1) outcome = stepShift({ ...plan, ...by }, outcome.state, seen);
  return outcome;
}

describe('shift step', () => {
  test('nothing fails -> measures, then each step for its time, then completed at the last', () => {
    const seen: string[] = [];
    let outcome = run(1, undefined, calm);
    for (let look = 1; look < 60 && !hasEnded(outcome.state); look += 1) {
      seen.push(`${outcome.state.phase} ${outcome.state.percent}`);
      outcome = stepShift(plan, outcome.state, calm);
    }
    const steps = ['Measuring 0', 'Shifting 5', 'Shifting 25', 'Shifting 50', 'Shifting 100'];
    expect([...new Set(seen)]).toEqual(steps);
    expect(steps.map((step) => seen.filter((each) => each === step).length)).toEqual([5, 6, 6, 6, 6]);
    expect(outcome.state).toMatchObject({ phase: 'Completed', percent: 100 });
    expect(outcome.message).toBe('100 % go to west (0 of 60 failed): write it into the policy, then delete the shift');
  });

  const atQuarter = run(12, undefined, calm);

  test('a failure that begins at a quarter -> back to nothing in two looks, and it stays there', () => {
    expect(atQuarter.state).toMatchObject({ phase: 'Shifting', percent: 25 });
    const bad = run(2, atQuarter, sight(counts(50, 40), counts(200, 40)));
    expect(bad.state).toMatchObject({ phase: 'RolledBack', percent: 0 });
    expect(bad.message).toBe(
      'went back at 25 %: to west 80 of 100 failed, to all 80 of 400 failed; before 0 of 1200 failed, 2 points more are allowed',
    );
    expect(run(50, bad, calm).state).toMatchObject({ phase: 'RolledBack', percent: 0 });
  });

  test('nodes leave the new cluster -> back, without a failure to be seen; fewer nodes than the bound -> on', () => {
    const unseen = { ...calm, to: counts(0), leftBy: { nodes: 1, of: 3 } };
    const back = stepShift(plan, atQuarter.state, unseen);
    expect(back).toMatchObject({ reason: 'TargetLeft', state: { phase: 'RolledBack', percent: 0 } });
    expect(back.message).toMatch(/^went back at 25 %: west does not answer from 1 of 3 nodes/);
    expect(stepShift(plan, atQuarter.state, { ...calm, leftBy: { nodes: 1, of: 50 } }).state.phase).toBe('Shifting');
    expect(stepShift(plan, firstState, unseen).state.phase).toBe('Measuring');
  });

  test('resets by the endpoint are failures; the same part of them before is not worse', () => {
    const resets = (tried: number, reset: number) => ({ tried, answered: tried, reset });
    expect(stepShift(plan, atQuarter.state, sight(resets(50, 10), resets(200, 10))).reason).toBe('Worse');
    const often = sight(resets(10, 2), resets(200, 40));
    expect(run(29, undefined, often).state.phase).toBe('Shifting');
    expect(run(40, undefined, often).state.phase).toBe('Completed');
  });

  test('the old cluster fails because of the shift -> back too', () => {
    const bad = run(5, atQuarter, sight(counts(50), counts(400, 200)));
    expect(bad.reason).toBe('Worse');
  });

  test('too few connections -> waits at its step for as long as it takes', () => {
    const waiting = run(1000, atQuarter, sight(counts(0), counts(200)));
    expect(waiting).toMatchObject({ reason: 'TooFewConnections', state: { percent: 25 } });
    expect(waiting.message).toBe('waits at 25 %: 0 of 50 connections to west were seen, too few to judge');
  });

  test('few connections that nearly all fail -> not waited for', () => {
    expect(run(2, atQuarter, sight(counts(6, 6), counts(6, 6))).reason).toBe('Worse');
  });

  test('the last attempts of a step have no answer yet -> not forward before they are known', () => {
    const old = run(4, atQuarter, calm);
    const unknown = stepShift(plan, old.state, sight(counts(40, 40), counts(200, 40)));
    expect(unknown).toMatchObject({ reason: 'Holding', state: { percent: 25 } });
    expect(unknown.state.heldSeconds).toBeGreaterThanOrEqual(plan.everySeconds - 10);
    const held = stepShift({ ...plan, everySeconds: 10 }, old.state, sight(counts(40, 40), counts(200, 40)));
    expect(held).toMatchObject({ reason: 'Holding', state: { percent: 25 } });
    const answered = sight({ tried: 0, answered: 40, reset: 0 }, { tried: 200, answered: 240, reset: 0 });
    expect(stepShift({ ...plan, everySeconds: 10 }, held.state, answered).state.percent).toBe(50);
  });

  test('answers that are a look late, and a rate that falls -> no failures', () => {
    const late = stepShift(plan, atQuarter.state, sight({ tried: 500, answered: 0, reset: 0 }));
    expect(late.reason).toBe('Holding');
    expect(stepShift(plan, late.state, sight({ tried: 20, answered: 510, reset: 0 })).reason).toBe('Holding');
  });

  test('nobody reports, the cluster cannot be used, paused -> the step is kept and its time stands still', () => {
    const since = atQuarter.state.heldSeconds;
    const silent = { ...sight(counts(0)), isReported: false };
    for (const [outcome, reason] of [
      [run(1000, atQuarter, silent), 'NoReport'],
      [run(1000, atQuarter, { ...calm, obstacle: 'west exports it no more' }), 'Obstacle'],
      [run(1000, atQuarter, calm, { isPaused: true }), 'Paused'],
    ] as const)
      expect(outcome).toMatchObject({ reason, state: { percent: 25, heldSeconds: since } });
  });

  test('paused, and connections fail -> back all the same', () => {
    const bad = run(3, atQuarter, sight(counts(50, 40)), { isPaused: true });
    expect(bad.reason).toBe('Worse');
  });

  test('ended by hand, also after it was completed -> back', () => {
    for (const from of [atQuarter, run(100, undefined, calm)])
      expect(run(1, from, calm, { isAborted: true }).state).toMatchObject({ phase: 'Aborted', percent: 0 });
  });

  test('no connections wanted -> by time alone, without a report', () => {
    const silent = { ...sight(counts(0)), isReported: false };
    expect(run(40, undefined, silent, { minConnections: 0 }).state.phase).toBe('Completed');
  });

  test('simulated: random rates of failure before and in the new cluster -> back if it is much worse, done if it is not', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 30 }),
        fc.integer({ min: 0, max: 100 }),
        fc.integer({ min: 20, max: 500 }),
        (beforePercent, toPercent, rate) => {
          let outcome: ShiftOutcome = { state: firstState, reason: 'Measuring', message: '' };
          for (let look = 0; look < 400 && !hasEnded(outcome.state); look += 1) {
            const tried = Math.floor((rate * outcome.state.percent) / 100);
            const others = rate - tried;
            const failed = Math.floor((tried * toPercent) / 100);
            const all = failed + Math.floor((others * beforePercent) / 100);
            const { percent } = outcome.state;
            outcome = stepShift(plan, outcome.state, sight(counts(tried, failed), counts(rate, all)));
            // Forward one step at a time, or back to nothing.
            const at = plan.steps.indexOf(percent);
            expect([percent, plan.steps[at + 1] ?? percent, 0]).toContain(outcome.state.percent);
          }
          // A look is a sixth of a step: so much is not known yet when it ends.
          if (toPercent > 2 * beforePercent + 40)
            expect(outcome.state).toMatchObject({ phase: 'RolledBack', percent: 0 });
          if (toPercent <= beforePercent / 2) expect(outcome.state.phase).not.toBe('RolledBack');
        },
      ),
      { numRuns: 2000 },
    );
  });
});
