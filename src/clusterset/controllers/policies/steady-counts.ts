// Remembers, for imports with `minReady`, since when no ready endpoint of a cluster was lost.

import { isReady } from '../../../kube/objects/endpoint-slice.ts';
import type { AgentContext } from '../../copies/context.ts';
import type { CountedRecord } from '../../copies/counted-records.ts';
import type { Routing } from '../../rules/routing/routing.ts';
import { resumeSteady, type SteadyState, steadyMs, stepSteady } from '../../rules/routing/steady-ready.ts';

export class SteadyCounts {
  readonly #context: AgentContext;
  readonly #states = new Map<string, ReadonlyMap<string, SteadyState>>();

  constructor(context: AgentContext) {
    this.#context = context;
  }

  /** With what counts for `minReady`, if that is less than what is ready. */
  counted(key: string, routing: Routing, { records, before }: SteadyFacts): Routing {
    if (routing.minReady === undefined) {
      this.forget(key);
      return routing;
    }
    const nowMs = this.#context.world.clock.monotonicMs();
    const known = this.#states.get(key);
    const states = new Map<string, SteadyState>();
    const counted: Record<string, number> = {};
    for (const record of [...records].sort((one, other) => (one.cluster < other.cluster ? -1 : 1))) {
      const { cluster } = record;
      const ready = readyOf(record);
      const kept = known === undefined && before.counted !== undefined ? before.counted[cluster] : undefined;
      const state =
        kept === undefined ? stepSteady(known?.get(cluster), ready, nowMs) : resumeSteady(kept, ready, nowMs);
      states.set(cluster, state);
      if (state.counted < state.ready) counted[cluster] = state.counted;
    }
    this.#states.set(key, states);
    return Object.keys(counted).length === 0 ? routing : { ...routing, counted };
  }

  /** When the import is to be looked at again; undefined if all that is ready counts. */
  waitMs(key: string): number | undefined {
    const waiting = [...(this.#states.get(key)?.values() ?? [])].filter(({ counted, ready }) => counted < ready);
    if (waiting.length === 0) return undefined;
    const nowMs = this.#context.world.clock.monotonicMs();
    return Math.max(waitMsMin, Math.min(...waiting.map(({ lostMs }) => lostMs + steadyMs - nowMs)));
  }

  forget(key: string): void {
    this.#states.delete(key);
  }
}

/** While a policy cannot be read or makes no sense, nothing is counted. */
const waitMsMin = 500;

interface SteadyFacts {
  readonly records: readonly CountedRecord[];
  /** As it lies on the import now. */
  readonly before: Routing;
}

/** As its slices say; of two families, the one that has more. */
function readyOf({ status, published }: CountedRecord): number {
  if (!status.isTrusted || status.isDraining) return 0;
  const byFamily = Map.groupBy(published(), ({ addressType }) => addressType);
  const counts = [...byFamily.values()].map((slices) =>
    slices.reduce((sum, { endpoints }) => sum + (endpoints ?? []).filter(isReady).length, 0),
  );
  return Math.max(0, ...counts);
}
