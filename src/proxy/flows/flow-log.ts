// The last flows of a node, in bounded memory: what became known of each, in the order in which it did. Pure.

import { type Flow, type FlowFilter, passes } from './flow.ts';

export interface FlowLogLimits {
  readonly entriesMax: number;
  /** Older ones are not shown. */
  readonly keptMs: number;
  /** In one page. */
  readonly pageMax: number;
}

const flowLogLimits: FlowLogLimits = { entriesMax: 40_000, keptMs: 600_000, pageMax: 1_000 };

export interface LogPage {
  readonly flows: Flow[];
  readonly next: number;
  readonly hasMore: boolean;
  /** Entries after the asked number that are not there any more. */
  readonly forgotten: number;
}

export class FlowLog {
  readonly #limits: FlowLogLimits;
  /** A ring: entry n, from 1 on, lies at n modulo its size. */
  readonly #ring: Flow[] = [];
  readonly #notedMs: number[] = [];
  #last = 0;

  constructor(limits = flowLogLimits) {
    this.#limits = limits;
  }

  note(flow: Flow, nowMs: number): void {
    this.#last += 1;
    const at = this.#last % this.#limits.entriesMax;
    this.#ring[at] = flow;
    this.#notedMs[at] = nowMs;
  }

  /** Those after the number; without one, the last page. */
  page(after: number | undefined, filter: FlowFilter, nowMs: number): LogPage {
    const { entriesMax, pageMax, keptMs } = this.#limits;
    const oldest = Math.max(1, this.#last - entriesMax + 1);
    if (after === undefined) return this.#lastPage(oldest, filter, nowMs);
    // A number of an earlier process: begin anew.
    const from = after > this.#last || after < 0 ? oldest : Math.max(after + 1, oldest);
    const flows: Flow[] = [];
    let next = from;
    for (; next <= this.#last && flows.length < pageMax; next += 1) {
      const flow = this.#at(next, nowMs - keptMs);
      if (flow !== undefined && passes(flow, filter)) flows.push(flow);
    }
    return {
      flows,
      next: next - 1,
      hasMore: next <= this.#last,
      forgotten: after >= 0 && after < oldest - 1 ? oldest - 1 - after : 0,
    };
  }

  #lastPage(oldest: number, filter: FlowFilter, nowMs: number): LogPage {
    const { pageMax, keptMs } = this.#limits;
    const flows: Flow[] = [];
    for (let number = this.#last; number >= oldest && flows.length < pageMax; number -= 1) {
      const flow = this.#at(number, nowMs - keptMs);
      if (flow !== undefined && passes(flow, filter)) flows.push(flow);
    }
    return { flows: flows.reverse(), next: this.#last, hasMore: false, forgotten: 0 };
  }

  #at(number: number, sinceMs: number): Flow | undefined {
    const at = number % this.#limits.entriesMax;
    return (this.#notedMs[at] ?? 0) < sinceMs ? undefined : this.#ring[at];
  }
}
