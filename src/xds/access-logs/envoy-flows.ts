// The flows that Envoys tell of: bounded in rate and memory; what is beyond is counted. No process is in the way of a connection, and an
// Envoy whose server does not take its log drops entries, which it counts itself.

import type { JsonObject } from '../../base/json.ts';
import type { FlowFilter, FlowPage } from '../../proxy/flows/flow.ts';
import { FlowLog } from '../../proxy/flows/flow-log.ts';
import type { LogEntry } from './entries.ts';
import { type EntryContext, flowOf } from './entry-flow.ts';

export interface EnvoyFlowsOptions {
  readonly clock: { wallMs(): number; monotonicMs(): number };
  /** Entries. */
  readonly perSecond?: number;
}

export type EntrySource = Pick<EntryContext, 'node' | 'cluster' | 'logName'>;

const perSecondMax = 1_000;
const burstSeconds = 2;

export class EnvoyFlows {
  readonly #options: Required<EnvoyFlowsOptions>;
  readonly #log = new FlowLog();
  /** The service at a clusterset address; set when the home is followed. */
  serviceAt: (address: string) => string | undefined = () => undefined;
  #count = 0;
  #untold = 0;
  #left: number;
  #atMs: number;

  constructor({ clock, perSecond = perSecondMax }: EnvoyFlowsOptions) {
    this.#options = { clock, perSecond };
    this.#left = burstSeconds * perSecond;
    this.#atMs = clock.monotonicMs();
  }

  /** Throws MalformedError for an entry that cannot be read. */
  take(entries: readonly LogEntry[], source: EntrySource): void {
    const { clock, perSecond } = this.#options;
    const nowMs = clock.monotonicMs();
    this.#left = Math.min(burstSeconds * perSecond, this.#left + ((nowMs - this.#atMs) * perSecond) / 1000);
    this.#atMs = nowMs;
    const taken = entries.slice(0, Math.floor(this.#left));
    this.#left -= taken.length;
    this.#untold += entries.length - taken.length;
    for (const entry of taken) this.#note(entry.decode(), source, clock.wallMs());
  }

  #note(entry: JsonObject, source: EntrySource, nowMs: number): void {
    const flow = flowOf(entry, { ...source, nowMs, serviceAt: this.serviceAt });
    if (flow === undefined) return;
    this.#count += 1;
    this.#log.note({ ...flow, id: this.#count }, nowMs);
  }

  page(
    { node, from }: Pick<FlowPage, 'node' | 'from'>,
    { after, ...filter }: FlowFilter & { readonly after?: number },
  ): FlowPage {
    const page = this.#log.page(after, filter, this.#options.clock.wallMs());
    const losses = { unrecorded: this.#untold, overflows: 0, pausedMs: 0 };
    return { node, from, ...page, losses, problem: '' };
  }
}
