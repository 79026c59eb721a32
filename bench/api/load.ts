// How work is pressed on a server, and what is made of many measurements.

import { percentile } from '../report.ts';

/** Runs `act` for some time with so many at once, and says how many ended in a second. */
export async function perSecond(width: number, lastsMs: number, act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  let done = 0;
  const one = async () => {
    while (performance.now() - startedAt < lastsMs) {
      await act();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: width }, one));
  return (done / (performance.now() - startedAt)) * 1000;
}

/** Runs `act` so many times, with so many at once. */
export async function inFlight(width: number, count: number, act: () => Promise<unknown>): Promise<void> {
  let begun = 0;
  const one = async () => {
    while (begun < count) {
      begun += 1;
      await act();
    }
  };
  await Promise.all(Array.from({ length: width }, one));
}

export function median(values: readonly number[]): number {
  return percentile(
    [...values].sort((one, other) => one - other),
    0.5,
  );
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
