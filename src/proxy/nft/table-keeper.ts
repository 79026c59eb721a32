// Keeps one table of the kernel as its plan wants it: one transaction for all changes that came meanwhile. When a
// transaction fails, or another program changed the table, everything is written anew; a failed write leaves the old
// rules.

import { Backoff } from '../../base/backoff.ts';
import { errorText, type Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Nft } from './edge/nft.ts';
import { differences, formsChain, learnForms, readTable, type TablePlan } from './read-back.ts';
import { formsScript, type PresentTable, withoutFormsScript } from './script.ts';

/** The wanted content of one table. */
export interface KeptTable {
  readonly plan: TablePlan;
  /** Sets and chains without content, as a transaction before a refill: intervals that lead to a chain of the same transaction are refused. */
  declare?(): string;
  /** All that has changed since the last call, as one transaction; undefined if nothing has. */
  takeChange(): TableChange | undefined;
  /** Everything, with what has changed since; `present` is what the kernel holds of it. */
  refill(present: PresentTable | undefined): string;
  /** The same for a table of another version, which has to go first. */
  replace(): string;
}

export interface TableChange {
  readonly script: string;
  /** Called after the transaction. */
  readonly onDone?: () => void;
}

export interface TableKeeperOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly nft: Nft;
  readonly table: KeptTable;
  readonly observe?: (transaction: Transaction) => void;
}

export interface Transaction {
  readonly kind: 'change' | 'refill';
  readonly seconds: number;
  readonly isOk: boolean;
}

export interface ForeignChange {
  readonly pid: number;
  readonly line: string;
}

export interface KeeperStatus {
  /** Empty while the kernel holds what is wanted. */
  readonly problem: string;
  readonly transactions: number;
  readonly foreignChanges: number;
}

const backoffOptions = { firstMs: 500, delayMsMax: 30_000 };
/** Two that undo each other's changes must not keep a processor busy. */
const foreignRefillMs = 1000;

export class TableKeeper {
  readonly #options: TableKeeperOptions;
  readonly #backoff: Backoff;
  readonly #budget: LogBudget;
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
  /** What the kernel makes of the text of a rule. */
  readonly #forms = new Map<string, string>();

  constructor(options: TableKeeperOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.world.random, backoffOptions);
    this.#budget = new LogBudget(options.world.clock);
  }

  /** To be called when everything was read once: until then the rules of an earlier run stay. */
  async start(): Promise<void> {
    this.#isStarted = true;
    this.wake();
    await this.#running;
  }

  status(): KeeperStatus {
    return { problem: this.#problem, transactions: this.#transactions, foreignChanges: this.#foreignChanges };
  }

  /** Somebody else changed the table. */
  foreignChange(change: ForeignChange): void {
    this.#foreignChanges += 1;
    const fields = this.#budget.take();
    if (fields) this.#options.log.warn('another process changed the rules, restoring them', { ...change, ...fields });
    if (this.#foreignTimer !== undefined) return;
    const waitMs = Math.max(0, this.#lastForeignMs + foreignRefillMs - this.#nowMs());
    this.#foreignTimer = this.#options.world.timers.after(waitMs, () => {
      this.#foreignTimer = undefined;
      this.#lastForeignMs = this.#nowMs();
      this.refill();
    });
  }

  /** Compares the kernel with the plan; what differs is put right. */
  async verify(): Promise<string[]> {
    if (!this.#isStarted) return [];
    await this.#running;
    const found = differences(await this.#readTable(), this.#options.table.plan, this.#forms);
    // A change that came meanwhile is no difference.
    if (this.#running !== undefined || found.length === 0) return [];
    const fields = this.#budget.take();
    if (fields)
      this.#options.log.warn('the rules in the kernel differ from the plan, restoring them', { found, ...fields });
    this.refill();
    await this.#running;
    return found;
  }

  /** The table as the kernel has it. Rules that were not seen in its form yet are shown to it first. */
  async #readTable() {
    const { nft, table } = this.#options;
    const { plan } = table;
    const texts = new Set([...plan.rules().values()].flat());
    const unknown = [...texts].filter((rule) => !this.#forms.has(rule));
    // Without them the rules are only counted.
    const isShown = unknown.length > 0 && (await succeeds(nft.apply(formsScript(plan.name, formsChain, unknown))));
    try {
      const found = readTable(await nft.list({ table: plan.name }), plan);
      if (isShown) learnForms(found, unknown, this.#forms);
      return found;
    } finally {
      if (isShown) await succeeds(nft.apply(withoutFormsScript(plan.name, formsChain)));
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

  /** Everything is to be written anew. */
  refill(): void {
    this.#needsRefill = true;
    this.wake();
  }

  /** There may be something to write. */
  wake(): void {
    if (!this.#isStarted || this.#isStopped || this.#running !== undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  #nowMs(): number {
    return this.#options.world.clock.monotonicMs();
  }

  #later(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.world.timers.after(delayMs, () => {
      this.#timer = undefined;
      this.refill();
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
      const change = this.#options.table.takeChange();
      if (change === undefined) return;
      await this.#write(change);
    }
  }

  /** Whether the kernel now holds what is wanted. */
  async #writeAll(): Promise<boolean> {
    const { nft, log, table } = this.#options;
    this.#needsRefill = false;
    try {
      const present = readTable(await nft.list('ruleset-without-elements'), table.plan);
      if (table.declare !== undefined) await nft.apply(table.declare());
      await this.#transact('refill', () =>
        nft.apply(table.refill(present)).catch(async (error: unknown) => {
          if (present === undefined) throw error;
          log.info('replacing the table of another version', { error: errorText(error) });
          await nft.apply(table.replace());
          if (table.declare !== undefined) await nft.apply(table.refill(undefined));
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

  async #write({ script, onDone }: TableChange): Promise<void> {
    try {
      await this.#transact('change', () => this.#options.nft.apply(script));
      this.#problem = '';
      onDone?.();
    } catch (error) {
      this.#failed(error);
      this.#needsRefill = true;
    }
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
