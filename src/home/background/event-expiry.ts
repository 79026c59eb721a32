// Deletes each Event an hour after its last write, as Kubernetes does: Events are for people who look at what happened lately,
// and an agent writes them for as long as it runs.

import { errorText } from '../../base/log.ts';
import type { Timer } from '../../base/world.ts';
import { eventType } from '../../kube/objects/event.ts';
import type { Engine } from '../model/call.ts';
import type { Served } from '../model/registry.ts';
import { StatusError } from '../model/status.ts';
import { parsePlace, textOf } from '../model/stored.ts';
import { type Following, followPrefix } from '../store/follow.ts';
import type { Entry, StoreEvent } from '../store/store.ts';
import { removeObject } from '../verbs/delete.ts';
import { systemCall } from '../verbs/system-call.ts';
import type { Background } from './follow.ts';
import { moveOlderEvents } from './older-events.ts';

/** Removed together, so that they share commits. */
const removedAtOnce = 100;
/** In one lifetime of an Event. */
const sweeps = 60;

export function createEventExpiry(engine: Engine): Background {
  return new EventExpiry(engine);
}

class EventExpiry implements Background {
  readonly #engine: Engine;
  /** Keys of all Events with the end of their lifetime, in monotonic time. */
  readonly #dueMs = new Map<string, number>();
  #following: Following | undefined;
  #timer: Timer | undefined;
  #isStopped = false;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async start(): Promise<void> {
    const { store, world, log } = this.#engine;
    await moveOlderEvents(this.#engine);
    const prefix = this.#served()?.keyPrefix;
    if (prefix === undefined) return;
    let isListed = false;
    const onEvent = (event: StoreEvent) => this.#see(event, isListed);
    this.#following = await followPrefix({ store, world, log, prefix, remembersKeys: false, onEvent });
    isListed = true;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#following?.cancel();
    await this.#sweeping;
  }

  whenIdle(): Promise<void> {
    return this.#sweeping;
  }

  #served(): Served | undefined {
    return this.#engine.registry.findPlural(eventType.group, eventType.plural);
  }

  #see({ key, entry, previous }: StoreEvent, isNew: boolean): void {
    if (entry === undefined) {
      this.#dueMs.delete(key);
      return;
    }
    // The store was listed anew: a write would come with the entry before it.
    if (previous === undefined && this.#dueMs.has(key)) return;
    const { world, limits } = this.#engine;
    const ageMs = isNew ? 0 : Math.min(limits.eventMs, Math.max(0, world.clock.wallMs() - lastMsOf(entry)));
    this.#dueMs.set(key, world.clock.monotonicMs() + limits.eventMs - ageMs);
    this.#arm();
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#isStopped || this.#dueMs.size === 0) return;
    const { world, limits } = this.#engine;
    this.#timer = world.timers.after(limits.eventMs / sweeps, () => {
      this.#sweeping = this.#sweep().finally(() => {
        this.#timer = undefined;
        this.#arm();
      });
    });
  }

  async #sweep(): Promise<void> {
    const { world, log, turns } = this.#engine;
    const nowMs = world.clock.monotonicMs();
    const expired = [...this.#dueMs].filter(([, dueMs]) => dueMs <= nowMs).map(([key]) => key);
    try {
      for (let at = 0; at < expired.length && !this.#isStopped; at += removedAtOnce) {
        await turns.next();
        await Promise.all(expired.slice(at, at + removedAtOnce).map((key) => this.#remove(key)));
      }
    } catch (error) {
      log.warn('cannot delete old Events, trying again later', { error: errorText(error) });
    }
  }

  async #remove(key: string): Promise<void> {
    const { store, world, limits } = this.#engine;
    const served = this.#served();
    const entry = await store.get(key);
    if (entry === undefined || served === undefined) return void this.#dueMs.delete(key);
    // One that others hold by a finalizer is marked, and looked at again much later.
    this.#dueMs.set(key, world.clock.monotonicMs() + limits.eventMs);
    const call = systemCall(this.#engine, { served, ...parsePlace(served.keyPrefix, key) });
    const options = { isDryRun: false, resourceVersion: String(entry.revision) };
    await removeObject(this.#engine, call, options).catch((error: unknown) => {
      // Written or deleted meanwhile.
      if (error instanceof StatusError && ['Conflict', 'NotFound'].includes(error.reason)) return;
      this.#dueMs.set(key, world.clock.monotonicMs());
      throw error;
    });
  }
}

/** The last write, as far as an entry shows it. Clients can write only some of these times, and only later ones count. */
function lastMsOf(entry: Entry): number {
  const event = JSON.parse(textOf(entry.value)) as {
    metadata: { creationTimestamp?: string };
    lastTimestamp?: unknown;
    series?: { lastObservedTime?: unknown };
  };
  const times = [event.metadata.creationTimestamp, event.lastTimestamp, event.series?.lastObservedTime];
  const parsed = times.map((time) => Date.parse(String(time))).filter((ms) => !Number.isNaN(ms));
  return Math.max(0, ...parsed);
}
