import { describe, expect, test } from 'vitest';
import { formatRenewals, PatientTimes, renewalsAnnotation, renewalsOf, unchangedMs } from './renewal.ts';

// Ours were renewed at 0 s, 8 s and 16 s; it is 24 s now.
const renewals = [
  { revision: 100, wallMs: 0 },
  { revision: 110, wallMs: 8_000 },
  { revision: 120, wallMs: 16_000 },
];
const now = { wallMs: 24_000, gapMsMax: 20_000 };

describe('renewal history', () => {
  for (const [revision, expected, why] of [
    [90, 16_000, 'older than all of them -> unchanged since the second was sent'],
    [105, 8_000, 'between the first and the second -> since the third was sent'],
    [115, 0, 'before the last one -> nobody knows'],
    [125, 0, 'after all of them -> it lives'],
    [Number.NaN, 0, 'of no number -> proves nothing'],
  ] as const) {
    test(`renewal history: a lease of revision ${revision}, ${why}`, () =>
      expect(unchangedMs(renewals, { ...now, revision })).toBe(expected));
  }

  test('renewal history: a gap between renewals -> only the time after it counts', () => {
    expect(unchangedMs(renewals, { revision: 90, wallMs: 24_000, gapMsMax: 7_000 })).toBe(0);
    const broken = [{ revision: 50, wallMs: -60_000 }, ...renewals];
    expect(unchangedMs(broken, { ...now, revision: 40 })).toBe(16_000);
  });

  test('renewal history: no lease, or one that tells nothing valid -> no renewals', () => {
    const lease = (resourceVersion: string, renewTime: string, annotation: string) =>
      renewalsOf({
        ...{ apiVersion: '', kind: '', spec: { renewTime } },
        metadata: { name: 'l', resourceVersion, annotations: { [renewalsAnnotation]: annotation } },
      });
    expect(renewalsOf(undefined)).toEqual([]);
    expect(lease('0', time(1), 'x@1 0@1 5 5@x')).toEqual([]);
    expect(lease('7', 'never', '5@1')).toEqual([{ revision: 5, wallMs: 1 }]);
  });

  test('renewal history: renewals close together, or longer ago than the span -> left out', () => {
    const at = (...times: number[]) => times.map((wallMs, index) => ({ revision: index + 1, wallMs }));
    const span = { wallMs: 100_000, spanMs: 10_000 };
    expect(formatRenewals(at(89_999, 90_000, 90_999, 91_000), span)).toBe('2@90000 4@91000');
  });

  test('renewal history: a clock that was put back -> proves nothing', () => {
    expect(unchangedMs(renewals, { revision: 90, wallMs: 10_000, gapMsMax: 20_000 })).toBe(0);
  });

  test('renewal history: written and read -> the same, no more than a few, and none that are long past', () => {
    let lease = {
      apiVersion: '',
      kind: '',
      metadata: { name: 'l', resourceVersion: '1' },
      spec: { renewTime: time(0) },
    };
    for (let step = 1; step <= 200; step += 1) {
      const annotation = formatRenewals(renewalsOf(lease), { wallMs: step * 500, spanMs: 60_000 });
      const metadata = {
        name: 'l',
        resourceVersion: String(step + 1),
        annotations: { [renewalsAnnotation]: annotation },
      };
      lease = { ...lease, metadata, spec: { renewTime: time(step * 500) } };
    }
    const read = renewalsOf(lease);
    expect(read.length).toBeLessThan(12);
    expect(read.at(-1)).toEqual({ revision: 201, wallMs: 100_000 });
    expect(unchangedMs(read, { revision: 1, wallMs: 100_500, gapMsMax: 20_000 })).toBeGreaterThan(45_000);
  });
});

function time(wallMs: number): string {
  return new Date(wallMs).toISOString();
}

const long = { leaseMs: 30_000, renewalGapMsMax: 20_000, holdDownMs: 60_000, holdDownMsMax: 600_000, calmMs: 600_000 };
const short = { ...long, leaseMs: 6_000, renewalGapMsMax: 4_000 };

test('patient times: lowered -> the longer ones hold for one of the old lease times, then the shorter', () => {
  const times = new PatientTimes();
  expect(times.judgeBy(long, 0)).toEqual(long);
  expect(times.judgeBy(short, 10_000)).toEqual(long);
  expect(times.judgeBy(short, 39_000)).toEqual(long);
  expect(times.judgeBy(short, 40_000)).toEqual(short);
});

test('patient times: raised -> at once', () => {
  const times = new PatientTimes();
  times.judgeBy(short, 0);
  expect(times.judgeBy(long, 1)).toEqual(long);
});

test('patient times: lowered twice in a row -> the longest of them still holds', () => {
  const times = new PatientTimes();
  times.judgeBy(long, 0);
  times.judgeBy({ ...long, leaseMs: 20_000 }, 1_000);
  expect(times.judgeBy(short, 2_000).leaseMs).toBe(30_000);
  expect(times.judgeBy(short, 31_000).leaseMs).toBe(6_000);
});

test('patient times: only the gap between renewals lowered -> the longer one holds as long', () => {
  const times = new PatientTimes();
  times.judgeBy(long, 0);
  const narrow = { ...long, renewalGapMsMax: 4_000 };
  expect(times.judgeBy(narrow, 1_000)).toEqual(long);
  expect(times.judgeBy(narrow, 30_999)).toEqual(long);
  expect(times.judgeBy(narrow, 31_000)).toEqual(narrow);
});
