// Follows a prefix of the store: every entry first, then each change. When the store can no longer tell what changed, it
// lists again and also reports what went meanwhile, so that nothing that was taken away stays in force.

import { Backoff } from '../../base/backoff.ts';
import { errorText, type Log } from '../../base/log.ts';
import { sleep, type World } from '../../base/world.ts';
import { forEachEntry } from './each-entry.ts';
import type { Store, StoreEvent, StoreWatch } from './store.ts';

export interface FollowRequest {
  readonly store: Pick<Store, 'range' | 'watch'>;
  readonly world: Pick<World, 'timers' | 'random'>;
  readonly log: Log;
  readonly prefix: string;
  /**
   * An entry that was listed comes as if it had just been created. For an object deleted during an interruption only
   * the key is known.
   */
  readonly onEvent: (event: StoreEvent) => void;
  /** Whether all keys are remembered, so that the ones that went can be reported after a new list. Default: yes. */
  readonly remembersKeys?: boolean;
}

export interface Following {
  cancel(): void;
}

/** Resolves when everything that was there has been reported. */
export async function followPrefix(request: FollowRequest): Promise<Following> {
  const following = new PrefixFollower(request);
  await following.start();
  return following;
}

class PrefixFollower implements Following {
  readonly #request: FollowRequest;
  readonly #known: Set<string> | undefined;
  readonly #abort = new AbortController();
  readonly #backoff: Backoff;
  #watch: StoreWatch | undefined;

  constructor(request: FollowRequest) {
    this.#request = request;
    this.#known = request.remembersKeys === false ? undefined : new Set();
    this.#backoff = new Backoff(request.world.random, { firstMs: 100, delayMsMax: 5_000 });
  }

  async start(): Promise<void> {
    const revision = await this.#list();
    if (this.#abort.signal.aborted) return;
    this.#watch = this.#request.store.watch({
      prefix: this.#request.prefix,
      afterRevision: revision,
      onEvents: (events) => {
        this.#backoff.reset();
        for (const event of events) this.#report(event);
      },
      onEnd: (error) => void this.#restart(error),
    });
  }

  cancel(): void {
    this.#abort.abort(new Error('cancelled'));
    this.#watch?.cancel();
  }

  async #list(): Promise<number> {
    const missing = new Set(this.#known);
    const revision = await forEachEntry(this.#request.store, this.#request.prefix, (entry) => {
      missing.delete(entry.key);
      this.#report({ revision: entry.revision, key: entry.key, entry, previous: undefined });
    });
    for (const key of missing) this.#report({ revision, key, entry: undefined, previous: undefined });
    return revision;
  }

  #report(event: StoreEvent): void {
    if (event.entry === undefined) this.#known?.delete(event.key);
    else this.#known?.add(event.key);
    this.#request.onEvent(event);
  }

  async #restart(cause: Error): Promise<void> {
    const { log, prefix, world } = this.#request;
    let error: unknown = cause;
    while (!this.#abort.signal.aborted) {
      log.warn('following the store broke off; starting over', { prefix, error: errorText(error) });
      try {
        await sleep(world.timers, this.#backoff.nextMs(), this.#abort.signal);
        await this.start();
        return;
      } catch (failure) {
        error = failure;
      }
    }
  }
}
