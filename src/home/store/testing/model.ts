// The part of the contract that no list of examples covers: random histories, compared with a model so simple that it
// can be seen to be right. The model keeps a whole copy of the state for every revision.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type CommitRequest, CompactedError, type Entry, type Store } from '../store.ts';
import { bytes, entryOf, type Observed, observe, text, until } from './tools.ts';

type State = ReadonlyMap<string, Entry>;

class Model {
  readonly states: State[] = [new Map()];
  /** `key=value` or `key-` of each change, by revision. */
  readonly changes: string[][] = [[]];
  floor = 0;

  get revision(): number {
    return this.states.length - 1;
  }

  commit({ compares, writes }: CommitRequest): string {
    const state = this.states.at(-1)!;
    const failed = compares.find(({ key, revision }) => (state.get(key)?.revision ?? 0) !== revision);
    if (failed !== undefined) return `conflict ${failed.key}@${state.get(failed.key)?.revision ?? 0}`;
    const effective = writes.filter(({ key, value }) => value !== undefined || state.has(key));
    if (effective.length > 0) this.#apply(effective);
    return `committed ${this.revision}`;
  }

  range(revision: number, prefix: string, after: string | undefined, limit: number): string {
    const matches = ({ key }: Entry) => key.startsWith(prefix) && (after === undefined || key > after);
    const all = [...this.states[revision]!.values()].filter(matches).sort((a, b) => (a.key < b.key ? -1 : 1));
    return describePage(all.slice(0, limit), Math.max(0, all.length - limit));
  }

  changesAfter(revision: number, prefix: string): string[] {
    return this.changes
      .slice(revision + 1)
      .flat()
      .filter((change) => change.startsWith(prefix));
  }

  #apply(writes: CommitRequest['writes']): void {
    const next = new Map(this.states.at(-1)!);
    const revision = this.revision + 1;
    for (const { key, value } of writes) {
      if (value === undefined) next.delete(key);
      else next.set(key, entryOf({ key, value, revision, createRevision: next.get(key)?.createRevision ?? revision }));
    }
    this.changes.push(writes.map(({ key, value }) => describeChange(key, value)));
    this.states.push(next);
  }
}

type Step =
  | { readonly kind: 'commits'; readonly commits: readonly PlannedCommit[] }
  | {
      readonly kind: 'range';
      readonly back: number;
      readonly prefix: string;
      readonly after: string | undefined;
      readonly limit: number;
    }
  | { readonly kind: 'watch'; readonly back: number; readonly prefix: string }
  | { readonly kind: 'compact'; readonly back: number };

interface PlannedCommit {
  /** Compare with the revision the key really has, or with one that is off by this much. */
  readonly compares: readonly { readonly key: string; readonly off: number }[];
  readonly writes: readonly { readonly key: string; readonly value: string | undefined }[];
}

const key = fc.constantFrom('/a', '/a/1', '/a/2', '/a/3', '/b/1', '/b/2', '/c');
const prefix = fc.constantFrom('', '/', '/a', '/a/', '/b/', '/c');
const commits = fc.array(
  fc.record({
    compares: fc.array(fc.record({ key, off: fc.constantFrom(0, 0, 0, 1) }), { maxLength: 2 }),
    writes: fc.uniqueArray(fc.record({ key, value: fc.option(fc.string({ maxLength: 3 }), { nil: undefined }) }), {
      maxLength: 3,
      selector: (write) => write.key,
    }),
  }),
  { minLength: 1, maxLength: 6 },
);
const back = fc.nat(6);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('commits' as const), commits }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('range' as const),
      back,
      prefix,
      after: fc.option(key, { nil: undefined }),
      limit: fc.integer({ min: 1, max: 8 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('watch' as const), back, prefix }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('compact' as const), back }) },
);

export function storeModelContract(open: () => Promise<Store>): void {
  test('any history: results, reads at any revision and watches -> as the model says', async () => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const store = await open();
      try {
        await new Run(store).all(steps);
      } finally {
        await store.close();
      }
    });
    await fc.assert(property, { numRuns: 60 });
  });
}

class Run {
  readonly #store: Store;
  readonly #model = new Model();
  readonly #watching: { readonly observed: Observed; readonly prefix: string; readonly from: number }[] = [];

  constructor(store: Store) {
    this.#store = store;
  }

  async all(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#step(step);
    await this.#checkWatches();
  }

  async #step(step: Step): Promise<void> {
    if (step.kind === 'commits') return this.#commits(step.commits);
    const revision = Math.max(0, this.#model.revision - step.back);
    if (step.kind === 'range') return this.#range(step, revision);
    if (step.kind === 'compact') {
      await this.#store.compact(revision);
      this.#model.floor = Math.max(this.#model.floor, revision);
      expect(this.#store.floor()).toBe(this.#model.floor);
    } else if (revision >= this.#model.floor) {
      const observed = observe(this.#store, step.prefix, revision);
      // A watch begins at once for its caller, but a compaction that comes first may pass it.
      await Promise.resolve();
      this.#watching.push({ observed, prefix: step.prefix, from: revision });
    }
  }

  /** All at once: the store may group them, the outcome must be as if one came after the other. */
  async #commits(planned: readonly PlannedCommit[]): Promise<void> {
    const before = this.#model.states.at(-1)!;
    const requests = planned.map(({ compares, writes }) => ({
      compares: compares.map(({ key, off }) => ({ key, revision: (before.get(key)?.revision ?? 0) + off })),
      writes: writes.map(({ key, value }) => ({ key, value: value === undefined ? undefined : bytes(value) })),
    }));
    const results = await Promise.all(requests.map((request) => this.#store.commit(request)));
    const described = results.map((result) =>
      result.kind === 'committed'
        ? `committed ${result.revision}`
        : `conflict ${result.key}@${result.current?.revision ?? 0}`,
    );
    expect(described).toEqual(requests.map((request) => this.#model.commit(request)));
    expect(this.#store.revision()).toBe(this.#model.revision);
  }

  async #range(step: Step & { kind: 'range' }, revision: number): Promise<void> {
    const { prefix, after, limit } = step;
    const asked = this.#store.range({ prefix, after, limit, revision });
    if (revision < this.#model.floor) {
      await expect(asked).rejects.toBeInstanceOf(CompactedError);
      return;
    }
    const { entries, remaining } = await asked;
    expect(describePage(entries, remaining)).toBe(this.#model.range(revision, prefix, after, limit));
  }

  async #checkWatches(): Promise<void> {
    for (const { observed, prefix, from } of this.#watching) {
      const expected = this.#model.changesAfter(from, prefix);
      await until(() => observed.events.length >= expected.length);
      expect(observed.events.map(({ key, entry }) => describeChange(key, entry?.value))).toEqual(expected);
    }
  }
}

function describePage(entries: readonly Entry[], remaining: number): string {
  const rows = entries.map((e) => `${e.key}=${text(e.value)}@${e.createRevision}..${e.revision}`);
  return `${rows.join(' ')} +${remaining}`;
}

function describeChange(key: string, value: Uint8Array | undefined): string {
  return value === undefined ? `${key}-` : `${key}=${text(value)}`;
}
