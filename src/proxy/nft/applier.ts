// Keeps the kernel's table as the state wants it: one transaction for all changes that came meanwhile. When a
// transaction fails, or another program changed the table, everything is written anew; a failed write leaves the old
// rules.

import { Backoff } from '../../base/backoff.ts';
import { errorText, type Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { Timer, World } from '../../base/world.ts';
import type { ProxyState } from '../state.ts';
import type { Nft } from './edge/nft.ts';
import type { Element } from './port-plan.ts';
import { differences, formsChain, learnForms, plannedRules, readTable } from './read-back.ts';
import { type Redirect, redirectElements } from './redirects.ts';
import { type Difference, type GoneBackend, isEmpty, Ruleset } from './ruleset.ts';
import { differenceScript, formsScript, refillScript, replaceScript, withoutFormsScript } from './script.ts';
import type { TableOptions } from './table.ts';

export interface NftApplierOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly state: ProxyState;
  readonly nft: Nft;
  readonly table: TableOptions;
  readonly redirects?: readonly Redirect[];
  /** After the transaction that took them out. */
  readonly onGone: (gone: readonly GoneBackend[]) => void;
  readonly observe?: (transaction: Transaction) => void;
}

export interface Transaction {
  readonly kind: 'change' | 'refill';
  readonly seconds: number;
  readonly isOk: boolean;
}

export interface ApplierStatus {
  /** Empty while the kernel holds what is wanted. */
  readonly problem: string;
  readonly size: Ruleset['size'];
  readonly transactions: number;
  readonly foreignChanges: number;
  /** Services with something to say about them, at most a hundred. */
  readonly problems: Readonly<Record<string, readonly string[]>>;
}

const backoffOptions = { firstMs: 500, delayMsMax: 30_000 };
/** Two that undo each other's changes must not keep a processor busy. */
const foreignRefillMs = 1000;
const problemsMax = 100;

export class NftApplier {
  readonly #options: NftApplierOptions;
  readonly #ruleset: Ruleset;
  readonly #backoff: Backoff;
  readonly #budget: LogBudget;
  readonly #problems = new Map<string, readonly string[]>();
  #needsRefill = true;
  #isStarted = false;
  #isStopped = false;
  #running: Promise<void> | undefined;
  /** Until a failed refill is tried again. */
  #timer: Timer | undefined;
  #foreignTimer: Timer | undefined;
  #problem = 'the rules have not been written yet';
  #transactions = 0;
  #foreignChanges = 0;
  #lastForeignMs = Number.NEGATIVE_INFINITY;
  /** Wanted instead of those in the ruleset; undefined if they are the same. */
  #nextRedirects: readonly Element[] | undefined;
  #table: TableOptions;
  /** What the kernel makes of the text of a rule. */
  readonly #forms = new Map<string, string>();

  constructor(options: NftApplierOptions) {
    this.#options = options;
    this.#table = options.table;
    this.#backoff = new Backoff(options.world.random, backoffOptions);
    this.#budget = new LogBudget(options.world.clock);
    this.#ruleset = new Ruleset({ isHairpin: (cluster) => options.state.mayBeClient(cluster) });
    this.#ruleset.setRedirects(redirectElements(options.redirects ?? []));
    options.state.onDirty(() => this.#wake());
  }

  /** In place of those it had. */
  setRedirects(redirects: readonly Redirect[]): void {
    this.#nextRedirects = redirectElements(redirects);
    this.#wake();
  }

  /** Other ranges: the whole table is written anew. */
  setTable(table: TableOptions): void {
    this.#table = table;
    this.#refill();
  }

  /** To be called when everything was read once: until then the rules of an earlier run stay. */
  async start(): Promise<void> {
    this.#isStarted = true;
    this.#wake();
    await this.#running;
  }

  status(): ApplierStatus {
    return {
      problem: this.#problem,
      size: this.#ruleset.size,
      transactions: this.#transactions,
      foreignChanges: this.#foreignChanges,
      problems: Object.fromEntries([...this.#problems].slice(0, problemsMax)),
    };
  }

  /** Somebody else changed the table. */
  foreignChange(change: { readonly pid: number; readonly line: string }): void {
    this.#foreignChanges += 1;
    const fields = this.#budget.take();
    if (fields) this.#options.log.warn('another process changed the rules, restoring them', { ...change, ...fields });
    if (this.#foreignTimer !== undefined) return;
    const waitMs = Math.max(0, this.#lastForeignMs + foreignRefillMs - this.#nowMs());
    this.#foreignTimer = this.#options.world.timers.after(waitMs, () => {
      this.#foreignTimer = undefined;
      this.#lastForeignMs = this.#nowMs();
      this.#refill();
    });
  }

  /** Compares the kernel with the plan; what differs is put right. */
  async verify(): Promise<string[]> {
    await this.#running;
    const found = differences(await this.#readTable(), this.#ruleset, this.#table, this.#forms);
    // A change that came meanwhile is no difference.
    if (this.#running !== undefined || found.length === 0) return [];
    const fields = this.#budget.take();
    if (fields)
      this.#options.log.warn('the rules in the kernel differ from the plan, restoring them', { found, ...fields });
    this.#refill();
    await this.#running;
    return found;
  }

  /** The table as the kernel has it. Rules that were not seen in its form yet are shown to it first. */
  async #readTable() {
    const { nft } = this.#options;
    const texts = new Set([...plannedRules(this.#ruleset, this.#table).values()].flat());
    const unknown = [...texts].filter((rule) => !this.#forms.has(rule));
    // Without them the rules are only counted.
    const isShown = unknown.length > 0 && (await succeeds(nft.apply(formsScript(formsChain, unknown))));
    try {
      const table = readTable(await nft.list('table'));
      if (isShown) learnForms(table, unknown, this.#forms);
      return table;
    } finally {
      if (isShown) await succeeds(nft.apply(withoutFormsScript(formsChain)));
    }
  }

  /** Everything that waits is written. */
  async settled(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#foreignTimer?.cancel();
    await this.#running;
  }

  #nowMs(): number {
    return this.#options.world.clock.monotonicMs();
  }

  #refill(): void {
    this.#needsRefill = true;
    this.#wake();
  }

  #later(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.world.timers.after(delayMs, () => {
      this.#timer = undefined;
      this.#refill();
    });
  }

  #wake(): void {
    if (!this.#isStarted || this.#isStopped || this.#running !== undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<void> {
    // One event loop turn: a list or a watch brings several changes at once.
    await Promise.resolve();
    while (!this.#isStopped) {
      if (this.#needsRefill) {
        if (this.#timer !== undefined && this.#backoff.failures > 0) return;
        if (!(await this.#writeAll())) return;
        continue;
      }
      if (this.#nextRedirects !== undefined) {
        await this.#write(this.#takeRedirects());
        continue;
      }
      const keys = this.#options.state.takeDirty();
      if (keys.length === 0) return;
      await this.#write(this.#change(keys));
    }
  }

  /** Whether the kernel now holds what is wanted. */
  async #writeAll(): Promise<boolean> {
    const { state, nft, log } = this.#options;
    const table = this.#table;
    this.#change(state.takeDirty());
    this.#takeRedirects();
    this.#needsRefill = false;
    try {
      const present = readTable(await nft.list('ruleset-without-elements'));
      await this.#transact('refill', () =>
        nft.apply(refillScript(this.#ruleset, table, present)).catch(async (error: unknown) => {
          if (present === undefined) throw error;
          log.info('replacing the table of another version', { error: errorText(error) });
          await nft.apply(replaceScript(this.#ruleset, table));
        }),
      );
      this.#backoff.reset();
      this.#problem = '';
      return true;
    } catch (error) {
      this.#needsRefill = true;
      this.#failed(error);
      this.#later(this.#backoff.nextMs());
      return false;
    }
  }

  #takeRedirects(): Difference {
    const difference = this.#ruleset.setRedirects(this.#nextRedirects ?? this.#ruleset.redirects);
    this.#nextRedirects = undefined;
    return difference;
  }

  async #write(difference: Difference): Promise<void> {
    if (isEmpty(difference)) return;
    try {
      await this.#transact('change', () => this.#options.nft.apply(differenceScript(difference)));
      this.#problem = '';
      if (difference.gone.length > 0) this.#options.onGone(difference.gone);
    } catch (error) {
      this.#failed(error);
      this.#needsRefill = true;
    }
  }

  #change(keys: readonly string[]) {
    const { state } = this.#options;
    const services = keys.map((key) => {
      const { ports, problems } = state.choiceOf(key);
      if (problems.length > 0) this.#problems.set(key, problems);
      else this.#problems.delete(key);
      return [key, ports] as const;
    });
    return this.#ruleset.change(services);
  }

  async #transact(kind: Transaction['kind'], apply: () => Promise<void>): Promise<void> {
    const startedMs = this.#nowMs();
    let isOk = false;
    try {
      await apply();
      isOk = true;
    } finally {
      this.#transactions += 1;
      const seconds = (this.#nowMs() - startedMs) / 1000;
      this.#options.observe?.({ kind, seconds, isOk });
    }
  }

  #failed(error: unknown): void {
    this.#problem = errorText(error);
    const fields = this.#budget.take();
    if (fields)
      this.#options.log.error('rules were not written, those before stay', { error: this.#problem, ...fields });
  }
}

function succeeds(done: Promise<void>): Promise<boolean> {
  return done.then(
    () => true,
    () => false,
  );
}
