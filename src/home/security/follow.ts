// Keeps somebody informed of every object of a kind, straight from the store: all of them first, then each change.
// If the store can no longer tell, it starts over, so that nothing that was taken away stays in force.

import { errorText, type Log } from '../../base/log.ts';
import { sleep, type Timers } from '../../base/world.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { parsePlace, textOf } from '../encoding/stored.ts';
import { keyPrefixOf } from '../kinds/kind.ts';
import { forEachEntry } from '../store/each-entry.ts';
import type { Store, StoreWatch } from '../store/store.ts';

const retryDelayMs = 100;

export interface Follower {
  readonly type: { readonly group: string; readonly plural: string };
  /** The object as it lies in the store: without apiVersion, kind and resourceVersion. */
  onSet(object: AnyObject): void;
  onRemove(namespace: string, name: string): void;
}

export interface FollowOptions {
  readonly store: Store;
  readonly timers: Timers;
  readonly log: Log;
}

/** Resolves when the follower knows everything that was there. */
export async function follow(options: FollowOptions, follower: Follower): Promise<{ cancel(): void }> {
  const following = new Following(options, follower);
  await following.start();
  return following;
}

class Following {
  readonly #options: FollowOptions;
  readonly #follower: Follower;
  readonly #prefix: string;
  readonly #known = new Set<string>();
  readonly #abort = new AbortController();
  #watch: StoreWatch | undefined;

  constructor(options: FollowOptions, follower: Follower) {
    this.#options = options;
    this.#follower = follower;
    this.#prefix = keyPrefixOf(follower.type);
  }

  async start(): Promise<void> {
    const revision = await this.#list();
    if (this.#abort.signal.aborted) return;
    this.#watch = this.#options.store.watch({
      prefix: this.#prefix,
      afterRevision: revision,
      onEvents: (events) => {
        for (const { key, entry } of events) this.#apply(key, entry?.value);
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
    const revision = await forEachEntry(this.#options.store, this.#prefix, ({ key, value }) => {
      missing.delete(key);
      this.#apply(key, value);
    });
    for (const key of missing) this.#apply(key, undefined);
    return revision;
  }

  #apply(key: string, value: Uint8Array | undefined): void {
    if (value === undefined) {
      this.#known.delete(key);
      const { namespace, name } = parsePlace(this.#prefix, key);
      this.#follower.onRemove(namespace, name);
      return;
    }
    this.#known.add(key);
    this.#follower.onSet(JSON.parse(textOf(value)) as AnyObject);
  }

  async #restart(cause: Error): Promise<void> {
    let error: unknown = cause;
    while (!this.#abort.signal.aborted) {
      const { plural } = this.#follower.type;
      this.#options.log.warn('following the store broke off; starting over', { plural, error: errorText(error) });
      try {
        await sleep(this.#options.timers, retryDelayMs, this.#abort.signal);
        await this.start();
        return;
      } catch (failure) {
        error = failure;
      }
    }
  }
}
