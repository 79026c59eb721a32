// Writes one packed record set in the order that is right for the one who asks. Hot path: reads the catalog's bytes where
// they lie and makes no objects.

import { audience, order, recordHeaderBytes, setHeaderBytes } from '../catalog/answers.ts';
import type { PlacesReader, Standpoint } from '../catalog/places.ts';
import { tier } from '../catalog/places.ts';
import type { Answer, Section } from './answer.ts';

export class Selector {
  /** Moves on with every query, so that rotating answers do. */
  turn = 0;
  asker: Standpoint = { cluster: 0, zone: 0, region: 0 };
  readonly #places: PlacesReader;
  #bytes: Uint8Array = new Uint8Array(0);
  #section: Section = 'answer';
  #type = 0;
  #ttl = 0;
  #owner = 0;
  #written = 0;

  constructor(places: PlacesReader) {
    this.#places = places;
  }

  /** Number of records written, or -1 if the set does not fit; then nothing of it was written. */
  write(answer: Answer, section: Section, bytes: Uint8Array, setAt: number, ttl: number, owner: number): number {
    this.#bytes = bytes;
    this.#section = section;
    this.#type = (bytes[setAt]! << 8) | bytes[setAt + 1]!;
    this.#ttl = ttl;
    this.#owner = owner;
    this.#written = 0;
    const count = (bytes[setAt + 3]! << 8) | bytes[setAt + 4]!;
    const mark = answer.mark();
    if (this.#writeOrdered(answer, bytes[setAt + 2]!, setAt + setHeaderBytes, count)) return this.#written;
    answer.rewind(mark, section, this.#written);
    return -1;
  }

  #writeOrdered(answer: Answer, how: number, first: number, count: number): boolean {
    switch (how) {
      case order.rotating:
        return this.#rotating(answer, first, count);
      case order.localFirst:
        return this.#localFirst(answer, first, count);
      case order.nearestFirst:
      case order.nearestOnly:
      case order.localOnlyIfHealthy:
        return this.#byTier(answer, how, first, count);
      default:
        return this.#all(answer, first, count);
    }
  }

  #put(answer: Answer, record: number): boolean {
    const length = this.#lengthOf(record);
    const start = record + recordHeaderBytes;
    if (!answer.recordAt(this.#section, this.#type, this.#ttl, this.#bytes, start, length, this.#owner)) return false;
    this.#written += 1;
    return true;
  }

  #lengthOf(record: number): number {
    return (this.#bytes[record + 3]! << 8) | this.#bytes[record + 4]!;
  }

  #clusterOf(record: number): number {
    return (this.#bytes[record]! << 8) | this.#bytes[record + 1]!;
  }

  #next(record: number): number {
    return record + recordHeaderBytes + this.#lengthOf(record);
  }

  #all(answer: Answer, first: number, count: number): boolean {
    for (let i = 0, record = first; i < count; i++, record = this.#next(record)) {
      if (!this.#put(answer, record)) return false;
    }
    return true;
  }

  /** Only address sets rotate: their records are all of one size. */
  #rotating(answer: Answer, first: number, count: number): boolean {
    const stride = recordHeaderBytes + this.#lengthOf(first);
    for (let i = 0, at = this.turn % count; i < count; i++, at = at + 1 === count ? 0 : at + 1) {
      if (!this.#put(answer, first + at * stride)) return false;
    }
    return true;
  }

  #localFirst(answer: Answer, first: number, count: number): boolean {
    const { cluster } = this.asker;
    let groups = 0;
    let hasLocal = false;
    for (let i = 0, record = first, last = -1; i < count; i++, record = this.#next(record)) {
      const group = this.#clusterOf(record);
      if (group === cluster) hasLocal = true;
      if (group !== last) groups += 1;
      last = group;
    }
    if (hasLocal) return this.#group(answer, first, count, cluster);
    return this.#group(answer, first, count, this.#nthCluster(first, count, this.turn % groups));
  }

  /** Records lie cluster by cluster. */
  #nthCluster(first: number, count: number, n: number): number {
    let groups = -1;
    for (let i = 0, record = first, last = -1; i < count; i++, record = this.#next(record)) {
      const group = this.#clusterOf(record);
      if (group !== last) groups += 1;
      if (groups === n) return group;
      last = group;
    }
    return 0;
  }

  #group(answer: Answer, first: number, count: number, cluster: number): boolean {
    for (let i = 0, record = first; i < count; i++, record = this.#next(record)) {
      if (this.#clusterOf(record) === cluster && !this.#put(answer, record)) return false;
    }
    return true;
  }

  #byTier(answer: Answer, how: number, first: number, count: number): boolean {
    for (let distance = 0; distance <= tier.rest; distance++) {
      for (let i = 0, record = first; i < count; i++, record = this.#next(record)) {
        const cluster = this.#clusterOf(record);
        if (this.#places.tierOf(this.asker, cluster) !== distance || !this.#isMeant(record, cluster)) continue;
        if (!this.#put(answer, record)) return false;
      }
      if (this.#written === 0) continue;
      if (how === order.nearestOnly || (how === order.localOnlyIfHealthy && distance === tier.own)) return true;
    }
    return true;
  }

  #isMeant(record: number, cluster: number): boolean {
    const meant = this.#bytes[record + 2]!;
    if (meant === audience.everybody) return true;
    return (cluster === this.asker.cluster) === (meant === audience.ownCluster);
  }
}
