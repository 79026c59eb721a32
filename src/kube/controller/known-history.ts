// What a copy shows of the history of its home, and so where a watch can carry on. A home that was put back to an older
// copy and has written since has the same revisions for other things. No clock and no network: each input is a call.

import { isSameJson } from '../../base/json.ts';
import type { Renewal } from '../client/renewals.ts';
import type { WatchEvent } from '../client/watch-stream.ts';
import type { KubernetesObject } from '../objects/object.ts';

interface Sight {
  readonly object: KubernetesObject;
  readonly isGone: boolean;
}

/** What a watch tells of the home's objects. */
type Told<T> = Exclude<WatchEvent<T>, { type: 'ERROR' }>;

/** The home was put back to an older copy and has written since, or may have been. */
export class OtherHistory extends Error {
  constructor(message = 'the home no longer has the last revision') {
    super(message);
  }
}

/** A home that is restored from a snapshot goes on this far above all revisions before, and does not come so far otherwise. */
const restoreLeap = 100_000_000;

export class KnownHistory {
  /** Set while there is a copy that a watch can carry on from. */
  #revision: string | undefined;
  /** The last event; undefined if there was none since the list. */
  #last: Sight | undefined;
  /** Where a watch begins with the event we saw last; undefined when that was in a list. */
  #beforeLast: string | undefined;
  /** The event that a watch must begin with, or it is of another history. */
  #expected: Sight | undefined;
  /** The revision of the last list. It shows nothing of what was deleted before, so the history must be the same up to here. */
  #listedAt = 0;
  /** Whether the next list may be of another history than the copy. */
  #hasDoubts = false;
  /** Whether a list has just ended, or a watch at its time: nothing can have happened to the history since. */
  #isUnbroken = false;
  /** The newest of ours when the home last said something of this kind. */
  #renewal: Renewal | undefined;

  get revision(): string | undefined {
    return this.#revision;
  }

  get isUnbroken(): boolean {
    return this.#isUnbroken;
  }

  get renewal(): Renewal | undefined {
    return this.#renewal;
  }

  /** Whether the watch has yet to begin with the event that proves it. */
  get isUnproven(): boolean {
    return this.#expected !== undefined;
  }

  /** Returns whether the list may be of another history than the copy. */
  listBegins(): boolean {
    const isDoubted = this.#hasDoubts;
    this.#hasDoubts = false;
    return isDoubted;
  }

  /** The copy is still as it was: the next list is as doubtful as this one. */
  listFailed(isDoubted: boolean): void {
    this.#hasDoubts ||= isDoubted;
  }

  pagesBegin(): void {
    this.#last = undefined;
  }

  /** Whether the home was restored from a snapshot before it gave the list of that revision. */
  isRestored(newest: string): boolean {
    return this.#listedAt > 0 && Number(newest) - this.#listedAt >= restoreLeap;
  }

  listEnds(newest: string, renewal: Renewal | undefined): void {
    // Doubts raised meanwhile concern the earlier list.
    this.#revision = this.#hasDoubts ? undefined : newest;
    this.#listedAt = Number(newest);
    this.#beforeLast = undefined;
    this.#isUnbroken = true;
    this.#renewal = renewal;
  }

  /** Where to watch from when nothing can have happened since; undefined after a break. */
  watchBegins(): string | undefined {
    this.#expected = undefined;
    return this.#isUnbroken ? this.#revision : undefined;
  }

  /** The home has answered the watch: from now on anything can happen. */
  watchIsAnswered(): void {
    this.#isUnbroken = false;
  }

  watchEnds(isInTime: boolean): void {
    this.#isUnbroken = isInTime;
  }

  /** A home that refuses a watch is there. It may be overloaded: a list each time would make that worse. */
  stepFailed(isRefusal: boolean): void {
    this.#isUnbroken &&= isRefusal;
  }

  take<T extends KubernetesObject>(event: Told<T>, renewal: Renewal | undefined): void {
    const { resourceVersion } = event.object.metadata;
    if (event.type !== 'BOOKMARK') {
      this.#last = { object: event.object, isGone: event.type === 'DELETED' };
      if (resourceVersion !== this.#revision) this.#beforeLast = this.#revision;
    }
    this.#revision = resourceVersion ?? this.#revision;
    this.#renewal = renewal;
  }

  /** Takes the first event of a watch that is unproven: one that we have seen before, so it is not to be passed on again. */
  prove<T extends KubernetesObject>(event: Told<T>): void {
    const isGone = event.type === 'DELETED';
    if (
      event.type === 'BOOKMARK' ||
      isGone !== this.#expected!.isGone ||
      !isSameJson(event.object, this.#expected!.object)
    )
      throw new OtherHistory();
    this.#expected = undefined;
    this.#hasDoubts = false;
  }

  /**
   * Where to watch from after a break, in which the home may have been put back to a copy and have written past our
   * revision. Not from there: from the newest thing that shows the history to be the same, up to `proven` by renewals
   * of ours. Between the two ours has nothing, another may have something.
   */
  resumption(proven: number): string {
    const seenUntil = Math.max(Number(this.#last?.object.metadata.resourceVersion ?? 0), this.#listedAt);
    if (proven >= seenUntil) return String(Math.min(proven, Number(this.#revision)));
    if (this.#beforeLast === undefined) throw new OtherHistory('nothing shows that the home was not put back');
    this.#hasDoubts = true;
    this.#expected = this.#last;
    return this.#beforeLast;
  }

  /** The copy may be of another history: list, and trust no revision. */
  doubt(): void {
    this.#revision = undefined;
    this.#hasDoubts = true;
  }

  /** The copy cannot be carried on from: list. */
  forget(): void {
    this.#revision = undefined;
  }
}
