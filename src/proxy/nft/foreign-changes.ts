// Notices changes of our tables by others, by nft's monitor. A monitor that lost track, or ended, is replaced; what both see is looked
// at twice.

import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { lostTrack, NftMonitor } from './edge/monitor.ts';
import type { NftProgram } from './edge/nft.ts';
import { OwnWriters } from './own-writers.ts';
import type { ForeignChange, TableKeeper } from './table-keeper.ts';

export type Kept = Pick<TableKeeper, 'verify' | 'foreignChange'>;

export interface ForeignChangesOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly nft: NftProgram;
  /** By the name of their table. */
  readonly kept: ReadonlyMap<string, Kept>;
  /** Changes may have been missed, also of tables that are not compared. */
  readonly onUnseen: () => Promise<void>;
}

const monitorRestartMs = 5000;
const monitorOverlapMs = 1000;
/** Another change within this time is found by the next comparison. */
const lookAgainMs = 5000;

export class ForeignChanges {
  readonly #options: ForeignChangesOptions;
  readonly #writers: OwnWriters;
  #monitor: NftMonitor;
  /** They go on for a moment beside those that replace them. */
  readonly #replaced = new Set<NftMonitor>();
  #timer: Timer | undefined;
  #overlap: Timer | undefined;
  #openedMs = Number.NEGATIVE_INFINITY;
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(options: ForeignChangesOptions) {
    this.#options = options;
    const { world, nft } = options;
    this.#writers = new OwnWriters({
      world,
      introduce: (mark) => nft.introduce(mark),
      onForeign: (change) => (change.line === lostTrack ? this.#lookAt(change) : this.#restore(change)),
    });
    this.#monitor = this.#open();
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#overlap?.cancel();
    this.#writers.stop();
    await Promise.all([...this.#replaced, this.#monitor].map((each) => each.stop()));
  }

  #open(): NftMonitor {
    const opened: NftMonitor = new NftMonitor({
      onTransaction: (transaction) => this.#writers.seen(transaction),
      onLost: () => this.#lost(opened),
      onEnd: (why) => this.#ended(opened, why),
    });
    this.#openedMs = this.#options.world.clock.monotonicMs();
    return opened;
  }

  /** The old one goes on until the new one listens. */
  #lost(opened: NftMonitor): void {
    const { timers, clock } = this.#options.world;
    this.#timer?.cancel();
    this.#timer = timers.after(Math.max(0, this.#openedMs + monitorRestartMs - clock.monotonicMs()), () => {
      this.#monitor = this.#open();
      this.#replaced.add(opened);
      this.#overlap = timers.after(monitorOverlapMs, () => {
        this.#replaced.delete(opened);
        void opened.stop();
      });
    });
  }

  #ended(opened: NftMonitor, why: unknown): void {
    if (this.#monitor !== opened) return;
    const { world, log } = this.#options;
    log.warn('changes by others are not noticed for a moment', { why });
    // `nft flush ruleset`, as at a restart of a firewall, ends nft 1.0.6 before it tells of it.
    this.#lookAtAll();
    // It may have lost track before, and be about to be replaced.
    this.#timer?.cancel();
    this.#timer = world.timers.after(monitorRestartMs, () => {
      this.#monitor = this.#open();
      this.#overlap = world.timers.after(monitorOverlapMs, () => this.#lookAtAll());
    });
  }

  /** Whether a change of some map by another process was of ours: the kernel is read, not often. */
  #lookAt(change: ForeignChange): void {
    const { world, kept } = this.#options;
    const nowMs = world.clock.monotonicMs();
    if (nowMs - this.#lookedMs < lookAgainMs) return;
    this.#lookedMs = nowMs;
    for (const one of kept.values())
      one.verify().then(
        (found) => {
          if (found.length > 0) one.foreignChange(change);
        },
        (error: unknown) => this.#uncompared(error),
      );
  }

  #lookAtAll(): void {
    void this.#options.onUnseen();
    for (const one of this.#options.kept.values()) one.verify().catch((error: unknown) => this.#uncompared(error));
  }

  #uncompared(error: unknown): void {
    this.#options.log.warn('the rules in the kernel cannot be compared', { error: errorText(error) });
  }

  #restore(change: ForeignChange): void {
    for (const [name, one] of this.#options.kept)
      if (new RegExp(`\\b${name}(?=[\\s;]|$)`).test(change.line)) one.foreignChange(change);
  }
}
