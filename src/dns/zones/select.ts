// Writes one packed record set in the order that is right for the one who asks. Hot path: reads the catalog's bytes where
// they lie and makes no objects.

import { recordType } from '../../base/dns/codes.ts';
import { nameBytesMax } from '../../base/dns/name.ts';
import {
  audience,
  endpointTarget,
  equalRecordsMark,
  order,
  orderIn,
  recordHeaderBytes,
  setHeaderBytes,
  sharesSum,
  srvHeadBytes,
} from '../../catalog/names/answers.ts';
import { type PlacesReader, type Standpoint, tier } from '../../catalog/packed/places.ts';
import type { Answer, Section } from '../message/answer.ts';
import { writeHostLabel } from './endpoint-hosts.ts';

/** More shards than any answer can hold. */
const recordsMax = 4096;
const notMeant = 4;
const underscore = 0x5f;
/** 65,536 times the golden ratio; odd, so that its multiples take every value. */
const goldenStep = 40_503;

const noBytes = new Uint8Array(0);

export class Selector {
  /** Moves on with every query, so that rotating answers do. */
  turn = 0;
  /** Only SRV records with this port number are written, with the next set; -1 for all. */
  onlyPort = -1;
  asker: Standpoint = { cluster: 0, zone: 0, region: 0 };
  /** The service whose name is asked: where its SRV records lead that do not say. */
  #service: Uint8Array = noBytes;
  #serviceStart = 0;
  #serviceLength = 0;
  readonly #places: PlacesReader;
  #bytes: Uint8Array = noBytes;
  #section: Section = 'answer';
  #type = 0;
  #ttl = 0;
  #owner = 0;
  #written = 0;
  /** Room for a name that is being made. */
  readonly #target = new Uint8Array(2 * nameBytesMax);
  readonly #records = new Uint32Array(recordsMax);
  readonly #tiers = new Uint8Array(recordsMax);

  constructor(places: PlacesReader) {
    this.#places = places;
  }

  /**
   * Number of records written, or -1 if not all of them fit. A truncated answer keeps the records that fit and sets
   * TC (RFC 2181 section 9): clients without TCP use them. Anywhere else nothing of the set was written.
   */
  write(answer: Answer, section: Section, bytes: Uint8Array, setAt: number, ttl: number, owner: number): number {
    this.#bytes = bytes;
    this.#section = section;
    this.#type = (bytes[setAt]! << 8) | bytes[setAt + 1]!;
    this.#ttl = ttl;
    this.#owner = owner;
    this.#written = 0;
    const count = (bytes[setAt + 3]! << 8) | bytes[setAt + 4]!;
    const mark = answer.mark();
    const isWritten = this.#writeOrdered(answer, bytes[setAt + 2]!, setAt + setHeaderBytes, count);
    // A reference would keep a whole generation of the catalog in memory until the next query for this zone.
    this.#bytes = noBytes;
    this.#service = noBytes;
    this.onlyPort = -1;
    if (isWritten) return this.#written;
    if (section === 'answer') answer.isTruncated = true;
    else answer.rewind(mark, section, this.#written);
    return -1;
  }

  #writeOrdered(answer: Answer, how: number, first: number, count: number): boolean {
    switch (orderIn(how)) {
      case order.rotating:
        return this.#rotating(answer, first, count);
      case order.weighted:
        return this.#weighted(answer, first, count);
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

  /** The name as it was asked; `_port._proto` in front of it is no part of the service. */
  setService(name: Uint8Array, length: number): void {
    let start = 0;
    while (name[start] !== 0 && name[start + 1] === underscore) start += name[start]! + 1;
    this.#service = name;
    this.#serviceStart = start;
    this.#serviceLength = length - start;
  }

  #put(answer: Answer, record: number): boolean {
    const length = this.#lengthOf(record);
    const start = record + recordHeaderBytes;
    if (this.onlyPort >= 0 && ((this.#bytes[start + 4]! << 8) | this.#bytes[start + 5]!) !== this.onlyPort) return true;
    if (this.#type === recordType.SRV && length === srvHeadBytes) return this.#putOwnSrv(answer, start);
    if (this.#type === recordType.SRV && this.#bytes[record + 2] === endpointTarget)
      return this.#putEndpointSrv(answer, record, length);
    if (!answer.recordAt(this.#section, this.#type, this.#ttl, this.#bytes, start, length, this.#owner)) return false;
    this.#written += 1;
    return true;
  }

  #putOwnSrv(answer: Answer, start: number): boolean {
    const service = this.#service;
    const [at, length] = [this.#serviceStart, this.#serviceLength];
    if (!answer.srvAt(this.#section, this.#ttl, this.#bytes, start, service, at, length, this.#owner)) return false;
    this.#written += 1;
    return true;
  }

  /** Its target is the endpoint's name, made of the address that stands in its place, the cluster and the service. */
  #putEndpointSrv(answer: Answer, record: number, length: number): boolean {
    const start = record + recordHeaderBytes;
    const target = this.#target;
    const labels = this.#places.labelsOf(this.#clusterOf(record));
    // This thread does not know the cluster yet.
    if (!labels) return true;
    let end = writeHostLabel(target, this.#bytes, start + srvHeadBytes, length - srvHeadBytes);
    target.set(labels, end);
    end += labels.length;
    for (let i = 0; i < this.#serviceLength; i++) target[end + i] = this.#service[this.#serviceStart + i]!;
    end += this.#serviceLength;
    if (!answer.srvAt(this.#section, this.#ttl, this.#bytes, start, target, 0, end, this.#owner)) return false;
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
    return this.#from(answer, first, count, this.turn % count);
  }

  /** Turns are spread over all sums by the golden ratio: each is drawn once before any comes again. */
  #weighted(answer: Answer, first: number, count: number): boolean {
    const drawn = Math.imul(this.turn, goldenStep) & sharesSum;
    const stride = recordHeaderBytes + this.#lengthOf(first);
    let start = 0;
    while (start < count - 1 && this.#clusterOf(first + start * stride) < drawn) start += 1;
    return this.#from(answer, first, count, start);
  }

  #from(answer: Answer, first: number, count: number, start: number): boolean {
    const stride = recordHeaderBytes + this.#lengthOf(first);
    for (let i = 0, at = start; i < count; i++, at = at + 1 === count ? 0 : at + 1) {
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

  /** Looks at each record once, then writes tier by tier those that are meant for the asker. */
  #byTier(answer: Answer, marked: number, first: number, total: number): boolean {
    const how = orderIn(marked);
    const hasEqual = (marked & equalRecordsMark) !== 0;
    const count = Math.min(total, recordsMax);
    let tiersSeen = 0;
    for (let i = 0, record = first; i < count; i++, record = this.#next(record)) {
      const cluster = this.#clusterOf(record);
      const distance = this.#isMeant(record, cluster) ? this.#places.tierOf(this.asker, cluster) : notMeant;
      this.#records[i] = record;
      this.#tiers[i] = distance;
      tiersSeen |= 1 << distance;
    }
    for (let distance = 0; distance <= tier.rest; distance++) {
      if ((tiersSeen & (1 << distance)) === 0) continue;
      for (let i = 0; i < count; i++) {
        if (this.#tiers[i] !== distance) continue;
        if (hasEqual && this.#isWritten(i, distance, count)) this.#tiers[i] = notMeant;
        else if (!this.#put(answer, this.#records[i]!)) return false;
      }
      if (how === order.nearestOnly || (how === order.localOnlyIfHealthy && distance === tier.own)) return true;
    }
    return true;
  }

  /** Whether an equal record went before this one, from a cluster that is as near or nearer. */
  #isWritten(index: number, distance: number, count: number): boolean {
    const record = this.#records[index]!;
    for (let other = 0; other < count; other++) {
      const isBefore = this.#tiers[other]! < distance || (this.#tiers[other] === distance && other < index);
      if (isBefore && this.#areEqual(this.#records[other]!, record)) return true;
    }
    return false;
  }

  #areEqual(a: number, b: number): boolean {
    const length = this.#lengthOf(a);
    if (length !== this.#lengthOf(b)) return false;
    for (let i = recordHeaderBytes; i < recordHeaderBytes + length; i++) {
      if (this.#bytes[a + i] !== this.#bytes[b + i]) return false;
    }
    return true;
  }

  #isMeant(record: number, cluster: number): boolean {
    const meant = this.#bytes[record + 2]!;
    if (meant === audience.everybody) return true;
    return (cluster === this.asker.cluster) === (meant === audience.ownCluster);
  }
}
