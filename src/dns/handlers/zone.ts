// Answers one zone from the catalog: records, aliases, SRV with their addresses beside them, and the three kinds of "no"
// (no such type, no such name, not known yet) with the SOA that RFC 2308 asks for.

import { hashBytes, isWithin } from '../../base/dns/name.ts';
import { findSet, recordHeaderBytes, recordType, setHeaderBytes } from '../../catalog/answers.ts';
import type { Standpoint } from '../../catalog/places.ts';
import type { Zone } from '../../catalog/zones.ts';
import type { Answer } from '../answer.ts';
import type { Handler, Later, Step } from '../handler.ts';
import type { CatalogReader } from '../reader.ts';
import { Selector } from '../select.ts';
import { SoaTemplate } from '../soa.ts';
import { classAny, classIn, extendedError, headerBytes, type Query, rcode } from '../wire.ts';

export interface ZoneHandlerOptions {
  readonly name: string;
  readonly zone: Zone;
  readonly reader: CatalogReader;
  /** Who asks, as far as the order of answers goes. */
  readonly standpointOf: (query: Query) => Standpoint;
  /** Resolves the target of an alias that leads out of our zones. */
  readonly follow: (query: Query, answer: Answer, target: Uint8Array) => Step | Later;
  /** Whether this server itself answers for a name: then what it does not find is not there. */
  readonly isOwn: (name: Uint8Array) => boolean;
}

const questionOwner = 0xc000 | headerBytes;
const pointerMax = 0x3fff;
const aliasesMax = 8;
const glueMax = 64;
/** RFC 8482: ANY is answered with this and nothing else. */
const anyData = Uint8Array.from([7, ...Buffer.from('RFC8482'), 0]);

export function zoneHandler(options: ZoneHandlerOptions): Handler {
  const { zone, reader } = options;
  const selector = new Selector(reader.places);
  const soa = new SoaTemplate(zone);
  const glued = new Int32Array(glueMax);

  function handle(query: Query, answer: Answer): Step | Later {
    if (!isWithin(query.name, query.nameLength, zone.bytes)) return 'next';
    answer.zone = zone.id;
    if (query.class !== classIn && query.class !== classAny) {
      answer.fail(rcode.REFUSED, extendedError.notSupported, 'only class IN is served');
      return 'done';
    }
    if (!reader.isReady(zone.id)) {
      answer.fail(rcode.SERVFAIL, extendedError.notReady, `${zone.name} has not been read from its home yet`);
      return 'done';
    }
    answer.isAuthoritative = true;
    if (reader.isStale(zone.id)) answer.extendedError = extendedError.staleAnswer;
    selector.turn = (selector.turn + 1) & 0x3fffffff;
    selector.asker = options.standpointOf(query);
    return answerName(query, answer);
  }

  function answerName(query: Query, answer: Answer): Step | Later {
    const entry = reader.names.find(query.name, query.nameLength, query.nameHash);
    if (entry < 0) {
      if (answer.extendedError === extendedError.staleAnswer) answer.extendedError = extendedError.staleNxdomain;
      answer.rcode = rcode.NXDOMAIN;
      return negative(query, answer);
    }
    if (query.type === recordType.ANY) return answerAny(answer);
    if (query.type === recordType.SOA && query.nameLength === zone.bytes.length) {
      soa.write(answer, 'answer', query, reader.serial);
      return 'done';
    }
    return answerEntry(query, answer, entry);
  }

  function answerEntry(query: Query, answer: Answer, entry: number): Step | Later {
    const { bytes } = reader.names;
    const start = reader.names.valueStart(entry);
    const length = reader.names.valueLength(entry);
    const setAt = findSet(bytes, start, length, query.type);
    if (query.type === recordType.SRV) selector.setService(query.name, query.nameLength);
    if (setAt >= 0) return answerSet(query, answer, setAt, questionOwner);
    const aliasAt = findSet(bytes, start, length, recordType.CNAME);
    if (aliasAt >= 0) return answerAlias(query, answer, aliasAt);
    return negative(query, answer);
  }

  function answerSet(query: Query, answer: Answer, setAt: number, owner: number): Step {
    const { bytes } = reader.names;
    const recordsAt = answer.mark();
    const written = selector.write(answer, 'answer', bytes, setAt, zone.ttlSeconds, owner);
    if (written < 0) answer.truncate();
    else if (written === 0) return negative(query, answer);
    else if (query.type === recordType.SRV) addGlue(answer, recordsAt, written);
    return 'done';
  }

  /** Follows aliases as long as they stay in the catalog. */
  function answerAlias(query: Query, answer: Answer, firstAliasAt: number): Step | Later {
    const { bytes } = reader.names;
    let aliasAt = firstAliasAt;
    let owner = questionOwner;
    for (let i = 0; i < aliasesMax; i++) {
      const target = answer.mark() + 12;
      if (selector.write(answer, 'answer', bytes, aliasAt, zone.ttlSeconds, owner) < 0) {
        answer.truncate();
        return 'done';
      }
      owner = 0xc000 | (target - answer.start);
      const name = bytes.subarray(
        aliasAt + setHeaderBytes + recordHeaderBytes,
        aliasAt + setHeaderBytes + recordHeaderBytes + (answer.at - target),
      );
      const entry = reader.names.find(name, name.length, hashBytes(name, 0, name.length));
      if (entry < 0) return options.isOwn(name) ? 'done' : options.follow(query, answer, name.slice());
      const start = reader.names.valueStart(entry);
      const length = reader.names.valueLength(entry);
      const setAt = findSet(bytes, start, length, query.type);
      if (query.type === recordType.SRV) selector.setService(name, name.length);
      if (setAt >= 0) return answerSet(query, answer, setAt, owner);
      aliasAt = findSet(bytes, start, length, recordType.CNAME);
      if (aliasAt < 0) return 'done';
    }
    answer.fail(rcode.SERVFAIL, extendedError.other, `aliases of this name go on for more than ${aliasesMax} steps`);
    answer.truncate();
    answer.isTruncated = false;
    return 'done';
  }

  function negative(query: Query, answer: Answer): Step {
    soa.write(answer, 'authority', query, reader.serial);
    return 'done';
  }

  function answerAny(answer: Answer): Step {
    answer.recordAt('answer', recordType.HINFO, zone.ttlSeconds, anyData, 0, anyData.length, questionOwner);
    return 'done';
  }

  /** RFC 2782: the addresses of each target, once, as far as whole sets fit. */
  function addGlue(answer: Answer, recordsAt: number, count: number): void {
    const { bytes: catalog } = reader.names;
    let gluedCount = 0;
    let at = recordsAt;
    for (let i = 0; i < count && gluedCount < glueMax; i++) {
      const targetAt = at + 12 + 6;
      const end = at + 12 + ((answer.bytes[at + 10]! << 8) | answer.bytes[at + 11]!);
      at = end;
      if (targetAt - answer.start > pointerMax) return;
      const target = answer.bytes.subarray(targetAt, end);
      const entry = reader.names.find(target, target.length, hashBytes(target, 0, target.length));
      if (entry < 0 || glued.subarray(0, gluedCount).includes(entry)) continue;
      glued[gluedCount++] = entry;
      const owner = 0xc000 | (targetAt - answer.start);
      const start = reader.names.valueStart(entry);
      const length = reader.names.valueLength(entry);
      for (const type of addressTypes) {
        const setAt = findSet(catalog, start, length, type);
        if (setAt >= 0) selector.write(answer, 'additional', catalog, setAt, zone.ttlSeconds, owner);
      }
    }
  }

  return { name: options.name, handle };
}

const addressTypes = [recordType.A, recordType.AAAA] as const;
