// How many ready endpoints of a cluster count for `minReady`. Fewer count at once; more count again when none has been lost for a
// while, so that an endpoint that comes and goes does not move connections back and forth. Pure.

/** Since the last loss. */
export const steadyMs = 30_000;

export interface SteadyState {
  readonly ready: number;
  readonly counted: number;
  readonly lostMs: number;
}

export function stepSteady(state: SteadyState | undefined, ready: number, nowMs: number): SteadyState {
  if (state === undefined) return { ready, counted: ready, lostMs: Number.NEGATIVE_INFINITY };
  const lostMs = ready < state.ready ? nowMs : state.lostMs;
  // One counts in any case: a cluster that was empty serves a part at once.
  const counted = nowMs - lostMs >= steadyMs ? ready : Math.min(Math.max(1, state.counted), ready);
  return { ready, counted, lostMs };
}

/** As an agent starts that finds on an import what another one has counted. */
export function resumeSteady(counted: number, ready: number, nowMs: number): SteadyState {
  return { ready, counted: Math.min(counted, ready), lostMs: nowMs };
}
