// All traffic of a node by service and the cluster that it went to, and by the place of the endpoints, as the kernel counted it: exact and
// only rising while the proxy runs. Pure.

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

interface Bytes {
  /** By clients, in IP packets. */
  readonly sent: number;
  readonly received: number;
}

/** Connections are those of TCP, bytes those of all protocols. */
export type Traffic = Connections & Bytes;

export interface TotalRow extends Traffic {
  /** `namespace/name`; `other` for those that had no room. */
  readonly service: string;
  /** Empty if the endpoint was not known any more. */
  readonly cluster: string;
}

/** Where endpoints are; empty texts if nobody said. */
export interface EndpointPlace {
  readonly cluster: string;
  readonly region: string;
  readonly zone: string;
}

export type PlaceRow = EndpointPlace & Bytes;

type Counted = Partial<Traffic>;
type Owners = Pick<FlowOwners, 'serviceAt' | 'ownerOf'>;

export interface TotalsLimits {
  /** Pairs of service and cluster. */
  readonly rowsMax: number;
  readonly placesMax: number;
}

const totalsLimits: TotalsLimits = { rowsMax: 10_000, placesMax: 1_000 };
const noTraffic: Traffic = { tried: 0, answered: 0, refused: 0, reset: 0, sent: 0, received: 0 };
const other = { service: 'other', cluster: '' };
const otherPlace: EndpointPlace = { cluster: 'other', region: '', zone: '' };

export class Totals {
  readonly #rows = new Map<string, TotalRow>();
  readonly #places = new Map<string, PlaceRow>();
  readonly #limits: TotalsLimits;

  constructor(limits: Partial<TotalsLimits> = {}) {
    this.#limits = { ...totalsLimits, ...limits };
  }

  add(service: string, { region, zone, cluster }: EndpointPlace, counted: Counted): void {
    const row = { service, cluster };
    const found = roomFor(this.#rows, { max: this.#limits.rowsMax, wanted: row, instead: other });
    this.#rows.set(found.key, { ...found.name, ...sum(this.#rows.get(found.key), counted) });
    if (!counted.sent && !counted.received) return;
    const placed = { cluster, region, zone };
    const place = roomFor(this.#places, { max: this.#limits.placesMax, wanted: placed, instead: otherPlace });
    const { sent, received } = sum(this.#places.get(place.key), counted);
    this.#places.set(place.key, { ...place.name, sent, received });
  }

  /** What the kernel has counted since the last time, by `ADDRESS ENDPOINT PORT`, or a key without a service. */
  count(since: ReadonlyMap<string, Counted>, owners: Owners, nowMs: number): void {
    for (const [key, counted] of since) {
      const [address = '', endpoint, port] = key.split(' ');
      if (endpoint === undefined) {
        this.add(other.service, { ...otherPlace, cluster: '' }, counted);
        continue;
      }
      const service = owners.serviceAt(address);
      if (service === undefined) continue;
      this.add(service, owners.ownerOf(service, `${endpoint} ${port}`, nowMs), counted);
    }
  }

  rows(): TotalRow[] {
    return [...this.#rows.values()];
  }

  places(): PlaceRow[] {
    return [...this.#places.values()];
  }
}

function roomFor<T extends object>(
  rows: ReadonlyMap<string, unknown>,
  { max, wanted, instead }: { readonly max: number; readonly wanted: T; readonly instead: T },
): { readonly key: string; readonly name: T } {
  const key = Object.values(wanted).join(' ');
  return rows.has(key) || rows.size < max
    ? { key, name: wanted }
    : { key: Object.values(instead).join(' '), name: instead };
}

function sum(before: Counted | undefined, counted: Counted): Traffic {
  const of = (column: keyof Traffic) => (before?.[column] ?? 0) + (counted[column] ?? 0);
  return {
    ...{ tried: of('tried'), answered: of('answered'), refused: of('refused'), reset: of('reset') },
    ...{ sent: of('sent'), received: of('received') },
  };
}

/** Per second between two readings of the same counters. */
export function ratesOf(now: Traffic, before: Traffic | undefined, seconds: number): Traffic {
  const was = before ?? noTraffic;
  const of = (column: keyof Traffic) =>
    seconds > 0 ? Math.round((10 * Math.max(0, now[column] - was[column])) / seconds) / 10 : 0;
  return {
    ...{ tried: of('tried'), answered: of('answered'), refused: of('refused'), reset: of('reset') },
    ...{ sent: of('sent'), received: of('received') },
  };
}
