import { expect, test } from 'vitest';
import { PatientTimes } from './patient-times.ts';

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
