// Brings a public zone to what is wanted: reads it, plans the difference, applies it. Runs again on every change and after
// failures; only one run at a time, and changes during a run lead to one more.

import { Backoff } from '../../base/backoff.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { differenceOf, type NameChange, type ZoneSet } from './difference.ts';
import type { PublicSet } from './wanted.ts';

export interface PublisherOptions {
  readonly world: Pick<World, 'timers' | 'random'>;
  readonly log: Log;
  readonly provider: Provider;
  /** Names this writer among others in the same zone. */
  readonly owner: string;
  readonly ttlSeconds: number;
  readonly wanted: () => readonly PublicSet[];
  /** How often the zone is read even if nothing is known to have changed. */
  readonly resyncMs?: number;
  /** Told how each run ended: what was wrong, or an empty text. */
  readonly onRun?: (problem: string) => void;
}

export interface RunResult {
  readonly written: number;
  readonly failed: number;
  readonly conflicts: readonly string[];
  /** What else keeps the names from being served; empty if nothing does. */
  readonly remark: string;
}

export async function runOnce(options: Omit<PublisherOptions, 'world'>): Promise<RunResult> {
  const { provider, owner, ttlSeconds, log } = options;
  const current = await provider.read();
  const asked = options.wanted();
  const wanted = (await provider.adjust?.(asked)) ?? asked;
  const { changes, conflicts } = differenceOf({ owner, ttlSeconds, wanted, current });
  for (const name of conflicts) log.warn('public name has another owner, not changed', { name });
  const results = changes.length === 0 ? [] : await provider.apply(changes);
  let written = 0;
  results.forEach((result, i) => {
    const { name, kind } = changes[i]!;
    if (result.kind === 'done') written += 1;
    else
      log.warn('public name was not written', {
        name,
        change: kind,
        result: result.kind === 'failed' ? result.why : 'changed meanwhile',
      });
  });
  return { written, failed: results.length - written, conflicts, remark: provider.remark?.() ?? '' };
}

const defaultResyncMs = 300_000;

export class Publisher {
  readonly #options: PublisherOptions;
  readonly #backoff: Backoff;
  #timer: Timer | undefined;
  #isRunning = false;
  #isWanted = false;
  #isStopped = false;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.world.random, { firstMs: 1000, delayMsMax: 60_000 });
  }

  /** Something changed. */
  nudge(): void {
    this.#isWanted = true;
    if (!this.#isRunning && !this.#isStopped) void this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #run(): Promise<void> {
    this.#timer?.cancel();
    this.#isRunning = true;
    let delayMs = this.#options.resyncMs ?? defaultResyncMs;
    while (this.#isWanted && !this.#isStopped) {
      this.#isWanted = false;
      const isDone = await this.#try();
      if (!isDone) {
        delayMs = this.#backoff.nextMs();
        break;
      }
      this.#backoff.reset();
    }
    this.#isRunning = false;
    if (!this.#isStopped) this.#timer = this.#options.world.timers.after(delayMs, () => this.nudge());
  }

  async #try(): Promise<boolean> {
    try {
      const { failed, conflicts, remark } = await runOnce(this.#options);
      this.#options.onRun?.(problemOf(failed, conflicts) || remark);
      return failed === 0;
    } catch (error) {
      this.#options.log.warn('public zone cannot be brought up to date', { error: errorText(error) });
      this.#options.onRun?.(`the public zone cannot be brought up to date: ${errorText(error)}`);
      return false;
    }
  }
}

function problemOf(failed: number, conflicts: readonly string[]): string {
  if (failed > 0) return `${failed} public names were not written; they are tried again`;
  return conflicts.length === 0 ? '' : `names that belong to somebody else: ${conflicts.slice(0, 5).join(', ')}`;
}

export type ChangeResult =
  | { readonly kind: 'done' }
  /** Somebody else changed the name meanwhile; the next run looks again. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'failed'; readonly why: string };

/** The operations of a DNS provider: a server that takes updates, a webhook, objects for external-dns. */
export interface Provider {
  /** Everything in the zone, as it is now. */
  read(): Promise<readonly ZoneSet[]>;
  /** The sets as this provider can have them: it may give them another TTL. */
  adjust?(sets: readonly PublicSet[]): Promise<readonly PublicSet[]>;
  /** Why names are not served though they are written, as far as was read; empty if there is no reason. */
  remark?(): string;
  /** Each change whole or not at all, and only if the name is still free or ours, as the change says. */
  apply(changes: readonly NameChange[]): Promise<readonly ChangeResult[]>;
}
