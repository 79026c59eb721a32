// Dispatches changes to watchers. The cost of a change depends only on the watchers of its prefix;
// watchers of one prefix share one array of events.

import { errorText, type Log } from '../../base/log.ts';
import type { StoreEvent, WatchRequest } from './store.ts';

export class Watcher {
  readonly request: WatchRequest;
  isActive = true;

  constructor(request: WatchRequest) {
    this.request = request;
  }
}

export class Watchers {
  readonly #log: Log;
  readonly #byPrefix = new Map<string, Set<Watcher>>();
  /** How many registered prefixes have this length: the only lengths worth cutting a key at. */
  readonly #prefixLengths = new Map<number, number>();
  /** Watchers that asked for progress. */
  readonly #progressing = new Set<Watcher>();

  constructor(log: Log) {
    this.#log = log;
  }

  add(watcher: Watcher): void {
    const { prefix, onProgress } = watcher.request;
    let group = this.#byPrefix.get(prefix);
    if (group === undefined) {
      this.#byPrefix.set(prefix, (group = new Set()));
      this.#prefixLengths.set(prefix.length, (this.#prefixLengths.get(prefix.length) ?? 0) + 1);
    }
    group.add(watcher);
    if (onProgress !== undefined) this.#progressing.add(watcher);
  }

  remove(watcher: Watcher): void {
    watcher.isActive = false;
    this.#progressing.delete(watcher);
    const { prefix } = watcher.request;
    const group = this.#byPrefix.get(prefix);
    if (!group?.delete(watcher) || group.size > 0) return;
    this.#byPrefix.delete(prefix);
    const left = this.#prefixLengths.get(prefix.length)! - 1;
    if (left > 0) this.#prefixLengths.set(prefix.length, left);
    else this.#prefixLengths.delete(prefix.length);
  }

  /** Passes a batch that is on disk now to all watchers. */
  publish(events: readonly StoreEvent[], revision: number): void {
    for (const [group, matching] of this.#matching(events)) {
      for (const watcher of group) this.deliver(watcher, matching);
    }
    for (const watcher of this.#progressing) this.progress(watcher, revision);
  }

  deliver(watcher: Watcher, events: readonly StoreEvent[]): void {
    const { afterRevision } = watcher.request;
    // A watch from a revision that had not happened yet must not see the changes before it.
    const wanted = events[0]!.revision > afterRevision ? events : events.filter((e) => e.revision > afterRevision);
    if (wanted.length > 0) this.#call(watcher, () => watcher.request.onEvents(wanted));
  }

  progress(watcher: Watcher, revision: number): void {
    if (revision > watcher.request.afterRevision) this.#call(watcher, () => watcher.request.onProgress?.(revision));
  }

  endAll(error: Error): void {
    const all = [...this.#byPrefix.values()].flatMap((group) => [...group]);
    for (const watcher of all) this.end(watcher, error);
  }

  end(watcher: Watcher, error: Error): void {
    if (!watcher.isActive) return;
    this.remove(watcher);
    try {
      watcher.request.onEnd(error);
    } catch (thrown) {
      this.#log.error('a watcher threw at its end', { error: errorText(thrown) });
    }
  }

  #matching(events: readonly StoreEvent[]): Map<Set<Watcher>, StoreEvent[]> {
    const matching = new Map<Set<Watcher>, StoreEvent[]>();
    for (const event of events) {
      for (const length of this.#prefixLengths.keys()) {
        if (length > event.key.length) continue;
        const group = this.#byPrefix.get(event.key.slice(0, length));
        if (group === undefined) continue;
        const found = matching.get(group);
        if (found === undefined) matching.set(group, [event]);
        else found.push(event);
      }
    }
    return matching;
  }

  // One watcher that throws, against its promise, is cut off; the others and the store go on.
  #call(watcher: Watcher, run: () => void): void {
    if (!watcher.isActive) return;
    try {
      run();
    } catch (thrown) {
      this.#log.error('a watcher threw and is cut off', { prefix: watcher.request.prefix, error: errorText(thrown) });
      this.end(watcher, new Error('the watch was cut off: its callback threw', { cause: thrown }));
    }
  }
}
