// How long a change took from one cluster to another, as histograms count it. Pure.

/** Upper bounds in seconds; Kubernetes writes times in whole seconds. */
export const propagationBuckets: readonly number[] = [1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 900, 3600];
/** Another cluster wrote the time: a wrong one must not spoil the sum. */
const secondsMax = 86_400;

/** Clocks of two clusters differ: never below 0. */
export function propagationSeconds(sinceMs: number, nowMs: number): number {
  return Math.min(Math.max(0, nowMs - sinceMs) / 1000, secondsMax);
}
