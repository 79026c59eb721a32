// The table of clusterset addresses as the state wants it: from services that changed to transactions.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { PortChoice } from '../port-choice.ts';
import type { ProxyState } from '../state.ts';
import type { Nft } from './edge/nft.ts';
import type { Element } from './port-plan.ts';
import { plannedRules, type TablePlan } from './read-back.ts';
import { type Redirect, redirectElements } from './redirects.ts';
import { type Difference, type GoneBackend, isEmpty, Ruleset } from './ruleset.ts';
import { differenceScript, type PresentTable, refillScript, replaceScript } from './script.ts';
import { affinityMaps, planMaps, planSets, type TableOptions, tableName } from './table.ts';
import {
  type ForeignChange,
  type KeeperStatus,
  type KeptTable,
  type TableChange,
  TableKeeper,
  type Transaction,
} from './table-keeper.ts';

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
  /** Told of services whose rules are in place. */
  readonly onWritten?: (services: readonly Planned[]) => void;
}

/** What a service has become. */
export type Planned = readonly [key: string, ports: readonly PortChoice[]];

export interface ApplierStatus extends KeeperStatus {
  readonly size: Ruleset['size'];
  /** Services with something to say about them, at most a hundred. */
  readonly problems: Readonly<Record<string, readonly string[]>>;
}

const problemsMax = 100;

export class NftApplier implements KeptTable {
  readonly #options: NftApplierOptions;
  readonly #ruleset: Ruleset;
  readonly #keeper: TableKeeper;
  readonly #problems = new Map<string, readonly string[]>();
  /** Wanted instead of those in the ruleset; undefined if they are the same. */
  #nextRedirects: readonly Element[] | undefined;
  #table: TableOptions;
  readonly plan: TablePlan = {
    name: tableName,
    tracked: new Set([...planMaps, ...planSets].map(({ name }) => name)),
    untracked: new Set(affinityMaps.map(({ name }) => name)),
    rules: () => plannedRules(this.#ruleset, this.#table),
    elements: () => this.#ruleset.elements(),
  };

  constructor(options: NftApplierOptions) {
    this.#options = options;
    this.#table = options.table;
    this.#ruleset = new Ruleset({ isHairpin: (cluster) => options.state.mayBeClient(cluster) });
    this.#ruleset.setRedirects(redirectElements(options.redirects ?? []));
    this.#keeper = new TableKeeper({ ...options, table: this });
    options.state.onDirty(() => this.#keeper.wake());
  }

  /** In place of those it had. */
  setRedirects(redirects: readonly Redirect[]): void {
    this.#nextRedirects = redirectElements(redirects);
    this.#keeper.wake();
  }

  /** Other ranges: the whole table is written anew. */
  setTable(table: TableOptions): void {
    this.#table = table;
    this.#keeper.refill();
  }

  /** To be called when everything was read once: until then the rules of an earlier run stay. */
  start(): Promise<void> {
    return this.#keeper.start();
  }

  status(): ApplierStatus {
    return {
      ...this.#keeper.status(),
      size: this.#ruleset.size,
      problems: Object.fromEntries([...this.#problems].slice(0, problemsMax)),
    };
  }

  foreignChange(change: ForeignChange): void {
    this.#keeper.foreignChange(change);
  }

  /** Compares the kernel with the plan; what differs is put right. */
  verify(): Promise<string[]> {
    return this.#keeper.verify();
  }

  settled(): Promise<void> {
    return this.#keeper.settled();
  }

  stop(): Promise<void> {
    return this.#keeper.stop();
  }

  takeChange(): TableChange | undefined {
    if (this.#nextRedirects !== undefined) {
      const redirects = this.#takeRedirects();
      if (!isEmpty(redirects)) return this.#changeOf(redirects);
    }
    for (;;) {
      const keys = this.#options.state.takeDirty();
      if (keys.length === 0) return undefined;
      const services = this.#plan(keys);
      const difference = this.#ruleset.change(services);
      if (!isEmpty(difference)) return this.#changeOf(difference, services);
    }
  }

  refill(present: PresentTable | undefined): string {
    this.#ruleset.change(this.#plan(this.#options.state.takeDirty()));
    this.#takeRedirects();
    return refillScript(this.#ruleset, this.#table, present);
  }

  replace(): string {
    return replaceScript(this.#ruleset, this.#table);
  }

  #changeOf(difference: Difference, services: readonly Planned[] = []): TableChange {
    const onDone = () => {
      this.#options.onWritten?.(services);
      if (difference.gone.length > 0) this.#options.onGone(difference.gone);
    };
    return { script: differenceScript(difference), onDone };
  }

  #takeRedirects(): Difference {
    const difference = this.#ruleset.setRedirects(this.#nextRedirects ?? this.#ruleset.redirects);
    this.#nextRedirects = undefined;
    return difference;
  }

  #plan(keys: readonly string[]): Planned[] {
    const { state } = this.#options;
    return keys.map((key) => {
      const { ports, problems } = state.choiceOf(key);
      if (problems.length > 0) this.#problems.set(key, problems);
      else this.#problems.delete(key);
      return [key, ports] as const;
    });
  }
}
