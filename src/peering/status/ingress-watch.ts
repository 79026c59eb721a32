// Tries the ingresses of peers and our own, again and again: what is advertised may lead nowhere. Bounded in targets, in
// tries at a time, and in time. One failure is tried again before it counts.

import { inParallel } from '../../base/in-parallel.ts';
import { formatHostPort } from '../../base/net/host-port.ts';
import { sleep, type World } from '../../base/world.ts';
import type { IngressTarget, TriedIngress } from '../rules/reach.ts';

/** Never rejects: why it failed, or nothing. */
export type ProbeIngress = (target: IngressTarget & { readonly timeoutMs: number }) => Promise<string>;

export interface IngressWatchOptions {
  readonly world: Pick<World, 'timers'>;
  readonly probe: ProbeIngress;
  readonly everyMs: number;
  readonly targets: () => Iterable<IngressTarget>;
  readonly onChange: () => void;
}

const timeoutMs = 2500;
const againMs = 1000;
const atOnce = 16;
const targetsMax = 1000;

export class IngressWatch {
  readonly #options: IngressWatchOptions;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  /** By address and port: why it does not answer; empty if it does. */
  #results: ReadonlyMap<string, string> = new Map();

  constructor(options: IngressWatchOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** Those of these ingresses that were tried. */
  tried(ingresses: readonly { readonly address: string; readonly port: number }[]): TriedIngress[] {
    return ingresses.flatMap(({ address, port }) => {
      const at = formatHostPort(address, port);
      const why = this.#results.get(at);
      return why === undefined ? [] : [{ at, why }];
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopped'));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { world, everyMs, onChange } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const before = this.#results;
      this.#results = await this.#tryAll();
      if (signal.aborted) return;
      if (!isSame(before, this.#results)) onChange();
      await sleep(world.timers, everyMs, signal).catch(() => {});
    }
  }

  async #tryAll(): Promise<Map<string, string>> {
    const targets = new Map<string, IngressTarget>();
    for (const target of this.#options.targets()) {
      if (targets.size >= targetsMax) break;
      const key = formatHostPort(target.address, target.port);
      if (!targets.has(key)) targets.set(key, target);
    }
    const results = new Map<string, string>();
    await inParallel(targets, { atOnceMax: atOnce }, async ([key, target]) => {
      if (this.#stopping.signal.aborted) return;
      results.set(key, await this.#try(target));
    });
    return results;
  }

  async #try(target: IngressTarget): Promise<string> {
    const { world, probe } = this.#options;
    const first = await probe({ ...target, timeoutMs });
    if (first === '') return '';
    await sleep(world.timers, againMs, this.#stopping.signal).catch(() => {});
    return this.#stopping.signal.aborted ? first : probe({ ...target, timeoutMs });
  }
}

function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([key, why]) => other.get(key) === why);
}
