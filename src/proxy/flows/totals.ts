// All TCP connections of a node by service and the cluster that they went to, as the kernel counted them: exact and only rising while the
// proxy runs. Pure.

import type { FlowOwners } from './owners.ts';

export interface Connections {
  /** Attempts: a client that asks again counts again. */
  readonly tried: number;
  readonly answered: number;
  /** Attempts that the endpoint refused. */
  readonly refused: number;
  /** Ended by the endpoint with a reset after it had answered. */
  readonly reset: number;
}

export interface TotalRow extends Connections {
  /** `namespace/name`; `other` for those that had no room. */
  readonly service: string;
  readonly cluster: string;
}

/** What a node proxy answers to GET /connections. */
export interface TotalPage {
  readonly node: string;
  /** The cluster of the node. */
  readonly from: string;
  /** When the counting began, and when this was read, by the node's clock. */
  readonly sinceMs: number;
  readonly atMs: number;
  readonly rows: readonly TotalRow[];
}

type Counted = Partial<Connections>;

const none: Connections = { tried: 0, answered: 0, refused: 0, reset: 0 };
/** Pairs of service and cluster. */
const rowsMax = 10_000;

export class Totals {
  readonly #rows = new Map<string, TotalRow>();
  readonly #rowsMax: number;

  constructor(limit = rowsMax) {
    this.#rowsMax = limit;
  }

  add(service: string, cluster: string, counted: Counted): void {
    const wanted = `${service} ${cluster}`;
    const isNamed = this.#rows.has(wanted) || this.#rows.size < this.#rowsMax;
    const row = isNamed ? { service, cluster } : { service: 'other', cluster: '' };
    const key = isNamed ? wanted : 'other';
    const before = this.#rows.get(key) ?? none;
    const sum = (column: keyof Connections) => before[column] + (counted[column] ?? 0);
    this.#rows.set(key, {
      ...row,
      ...{ tried: sum('tried'), answered: sum('answered'), refused: sum('refused'), reset: sum('reset') },
    });
  }

  /** What the kernel has counted since the last time, by `ADDRESS ENDPOINT PORT`. */
  count(since: ReadonlyMap<string, Counted>, owners: Pick<FlowOwners, 'serviceAt' | 'ownerOf'>, nowMs: number): void {
    for (const [key, counted] of since) {
      const [address = '', endpoint, port] = key.split(' ');
      const service = owners.serviceAt(address);
      if (service === undefined) continue;
      this.add(service, owners.ownerOf(service, `${endpoint} ${port}`, nowMs).cluster, counted);
    }
  }

  rows(): TotalRow[] {
    return [...this.#rows.values()];
  }
}
