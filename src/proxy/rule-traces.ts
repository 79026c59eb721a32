// The step of a trace at which connections to a new import are carried on this node: from the import to its rules. Waiting ones are
// bounded; of an import whose endpoints come late it is not told.

import { carriedTrace } from '../base/telemetry/carried-trace.ts';
import { beginStep } from '../base/telemetry/steps.ts';
import type { World } from '../base/world.ts';
import type { FactIndex } from '../catalog/facts/fact-index.ts';
import type { PortChoice } from './port-choice.ts';

const waitingMax = 1_000;
const waitMsMax = 60_000;

interface Waiting {
  readonly traceparent: string;
  readonly sinceMs: number;
}

export class RuleTraces {
  readonly #world: Pick<World, 'clock' | 'tracing'>;
  readonly #cluster: () => string;
  readonly #waiting = new Map<string, Waiting>();

  constructor(world: Pick<World, 'clock' | 'tracing'>, cluster: () => string) {
    this.#world = world;
    this.#cluster = cluster;
  }

  /** To be called when everything was read once: those are not new. */
  follow(facts: FactIndex): void {
    if (this.#world.tracing === undefined) return;
    facts.onTouch((ownerKey, incoming) => {
      const traceparent = incoming === undefined ? undefined : carriedTrace(incoming);
      if (traceparent === undefined || ownerKey[0] !== 'i' || facts.ownerOf(ownerKey).isPresent) return;
      if (this.#waiting.size >= waitingMax) this.#waiting.delete(this.#waiting.keys().next().value ?? '');
      this.#waiting.set(ownerKey.slice(2), { traceparent, sinceMs: this.#world.clock.wallMs() });
    });
  }

  /** The rules of these services are in place. */
  readonly written = (services: readonly (readonly [key: string, ports: readonly PortChoice[]])[]): void => {
    if (this.#waiting.size === 0) return;
    for (const [key, ports] of services) this.#written(key, ports);
  };

  #written(key: string, ports: readonly PortChoice[]): void {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined || !ports.some(({ backends }) => backends.length > 0)) return;
    this.#waiting.delete(key);
    const { clock, tracing } = this.#world;
    const { traceparent: parent, sinceMs: startMs } = waiting;
    if (clock.wallMs() - startMs > waitMsMax) return;
    const [namespace = '', name = ''] = key.split('/');
    const service = { namespace, name };
    if (tracing === undefined) return;
    beginStep(tracing, 'carried', { cluster: this.#cluster(), service, parent, startMs }).end(clock.wallMs());
  }
}
