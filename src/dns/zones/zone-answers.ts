// Answers a name of a zone from the catalog: records, aliases, SRV with their addresses beside them, and two kinds of
// "no" (no such type, no such name) with the SOA that RFC 2308 asks for. Handlers decide about clients and readiness.

import { copyOf } from '../../base/bytes/copy.ts';
import { rcode, recordType } from '../../base/dns/codes.ts';
import { hashBytes } from '../../base/dns/name.ts';
import { findSet, recordHeaderBytes, setHeaderBytes, srvHeadBytes, zoneMark } from '../../catalog/names/answers.ts';
import type { Zone } from '../../catalog/names/zones.ts';
import type { Standpoint } from '../../catalog/packed/places.ts';
import type { Answer, Section } from '../message/answer.ts';
import type { Later, Step } from '../message/handler.ts';
import { SoaTemplate } from '../message/soa.ts';
import { extendedError, headerBytes, type Query } from '../message/wire.ts';
import { emptyHost, findHost, noHost } from './endpoint-hosts.ts';
import { PortFinder } from './ports.ts';
import type { CatalogReader } from './reader.ts';
import { Selector } from './select.ts';

export interface ZoneAnswersOptions {
  readonly zone: Zone;
  readonly soa: SoaTemplate;
  readonly reader: CatalogReader;
  /** The client's place, for the order of answers. */
  readonly standpointOf: (query: Query, answer: Answer) => Standpoint;
  /** Resolves the target of an alias that leads out of our zones. */
  readonly follow: (query: Query, answer: Answer, target: Uint8Array) => Step | Later;
  /** The zone of this server's that a name lies in. */
  readonly ownZoneOf: (name: Uint8Array) => Zone | undefined;
  /** Each alias is followed from the beginning: names of this table may be others' too, who go first. */
  readonly doAliasesLeave?: boolean;
}

/** How to answer from what an earlier process left: its own memory, and where those who ask stand in it. */
export type OldView = Pick<ZoneAnswersOptions, 'reader' | 'standpointOf'>;

/** `entry` is where the name lies in the catalog, or -1; `apexLength` how many bytes of it are the zone's own name. */
export type AnswerName = (query: Query, answer: Answer, entry: number, apexLength: number) => Step | Later;

const questionOwner = 0xc000 | headerBytes;
const pointerMax = 0x3fff;
const aliasesMax = 8;
const glueMax = 64;
/** RFC 8482: ANY is answered with this and nothing else. */
const anyData = Uint8Array.from([7, ...Buffer.from('RFC8482'), 0]);

export function failNotReady(answer: Answer, zone: Zone): void {
  answer.fail(rcode.SERVFAIL, extendedError.notReady, `${zone.name} has not been read from its home yet`);
}

/**
 * Answers a name that an earlier process knew, and says that this is old; undefined for any other. A name missing
 * then may exist by now: never NXDOMAIN from an old copy.
 */
export function createOldAnswers(
  options: Omit<ZoneAnswersOptions, keyof OldView>,
  old: OldView | undefined,
): (query: Query, answer: Answer, apexLength: number) => Step | Later | undefined {
  if (old === undefined) return () => undefined;
  const { reader } = old;
  const answerName = createZoneAnswers({ ...options, ...old });
  const ports = new PortFinder();
  const isDerived = ({ name, nameLength }: Query, apexLength: number) =>
    ports.find(reader, name, nameLength) || findHost(reader, name, nameLength, apexLength) !== noHost;
  return (query, answer, apexLength) => {
    const isThere = reader.isStale(options.zone.id);
    const entry = isThere ? reader.names.find(query.name, query.nameLength, query.nameHash) : -1;
    const isKnown = entry >= 0 || (isThere && isDerived(query, apexLength));
    if (!isKnown) return undefined;
    answer.isAuthoritative = true;
    answer.extendedError = extendedError.staleAnswer;
    return answerName(query, answer, entry, apexLength);
  };
}

export function createZoneAnswers(options: ZoneAnswersOptions): AnswerName {
  const { zone, reader, soa } = options;
  const selector = new Selector(reader.places);
  const ports = new PortFinder();
  const glued = new Int32Array(glueMax);
  let apexBytes = 0;
  let turn = 0;
  let turnV6 = 0;

  function answerName(query: Query, answer: Answer, entry: number, apexLength: number): Step | Later {
    // Most clients ask for both families at once: a turn they shared would bring the same order every second time.
    if (query.type === recordType.AAAA) selector.turn = turnV6 = (turnV6 + 1) & 0x3fffffff;
    else selector.turn = turn = (turn + 1) & 0x3fffffff;
    selector.asker = options.standpointOf(query, answer);
    apexBytes = apexLength;
    if (entry < 0) {
      if (ports.find(reader, query.name, query.nameLength)) return answerPort(query, answer);
      const host = findHost(reader, query.name, query.nameLength, apexLength);
      if (host !== noHost) return answerHost(query, answer, host);
      if (answer.extendedError === extendedError.staleAnswer) answer.extendedError = extendedError.staleNxdomain;
      answer.rcode = rcode.NXDOMAIN;
      return negative(query, answer);
    }
    // Its own source is away, whatever is true of the rest of the zone.
    if (reader.names.bytes[reader.names.valueStart(entry)]! & zoneMark.old)
      answer.extendedError = extendedError.staleAnswer;
    if (query.type === recordType.ANY) return answerAny(answer);
    if (query.type === recordType.SOA && query.nameLength === apexLength) {
      soa.write(answer, 'answer', query, reader.serial, apexLength);
      return 'done';
    }
    return answerEntry(query, answer, entry);
  }

  /** The port of a service, or one of its protocols, as `ports` found it. */
  function answerPort(query: Query, answer: Answer): Step {
    if (query.type === recordType.ANY) return answerAny(answer);
    if (query.type !== recordType.SRV || ports.setAt < 0) return negative(query, answer);
    selector.setService(query.name, query.nameLength);
    selector.onlyPort = ports.only;
    return answerSet(query, answer, ports.setAt, questionOwner);
  }

  /** An endpoint whose name is made of its address. */
  function answerHost(query: Query, answer: Answer, host: number): Step {
    if (query.type === recordType.ANY) return answerAny(answer);
    if (!writeHost(answer, 'answer', { host, type: query.type, owner: questionOwner })) return negative(query, answer);
    return 'done';
  }

  /** False if it has no record of this type. */
  function writeHost(
    answer: Answer,
    section: Section,
    { host, type, owner }: { readonly host: number; readonly type: number | undefined; readonly owner: number },
  ): boolean {
    if (host === emptyHost) return false;
    const { bytes } = reader.names;
    const size = (bytes[host + 3]! << 8) | bytes[host + 4]!;
    const own = size === 4 ? recordType.A : recordType.AAAA;
    if (type !== undefined && type !== own) return false;
    const isWritten = answer.recordAt(section, own, zone.ttlSeconds, bytes, host + recordHeaderBytes, size, owner);
    if (!isWritten && section === 'answer') answer.isTruncated = true;
    return true;
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

  /** `alias` is the name behind aliases, if there are any. */
  function answerSet(query: Query, answer: Answer, setAt: number, owner: number, alias?: Uint8Array): Step {
    const { bytes } = reader.names;
    const recordsAt = answer.mark();
    const written = selector.write(answer, 'answer', bytes, setAt, zone.ttlSeconds, owner);
    if (written === 0 && alias)
      return negativeBehindAlias(answer, options.ownZoneOf(alias), alias.length, owner & pointerMax);
    else if (written === 0) return negative(query, answer);
    else if (query.type === recordType.SRV) addGlue(answer, recordsAt, written, srvHeadBytes);
    else if (query.type === recordType.NS) addGlue(answer, recordsAt, written, 0);
    return 'done';
  }

  /** Follows aliases as long as they stay in the catalog. */
  function answerAlias(query: Query, answer: Answer, firstAliasAt: number): Step | Later {
    const { bytes } = reader.names;
    let aliasAt = firstAliasAt;
    let owner = questionOwner;
    for (let i = 0; i < aliasesMax; i++) {
      const target = answer.mark() + 12;
      if (selector.write(answer, 'answer', bytes, aliasAt, zone.ttlSeconds, owner) < 0) return 'done';
      owner = 0xc000 | (target - answer.start);
      const name = bytes.subarray(
        aliasAt + setHeaderBytes + recordHeaderBytes,
        aliasAt + setHeaderBytes + recordHeaderBytes + (answer.at - target),
      );
      const hash = hashBytes(name, 0, name.length);
      const entry = options.doAliasesLeave ? -1 : reader.names.find(name, name.length, hash);
      if (entry < 0) return answerElsewhere(query, answer, name, target - answer.start);
      const start = reader.names.valueStart(entry);
      const length = reader.names.valueLength(entry);
      const setAt = findSet(bytes, start, length, query.type);
      if (query.type === recordType.SRV) selector.setService(name, name.length);
      if (setAt >= 0) return answerSet(query, answer, setAt, owner, name);
      aliasAt = findSet(bytes, start, length, recordType.CNAME);
      if (aliasAt < 0) return negativeBehindAlias(answer, options.ownZoneOf(name), name.length, target - answer.start);
    }
    answer.fail(rcode.SERVFAIL, extendedError.other, `aliases of this name go on for more than ${aliasesMax} steps`);
    answer.clear();
    return 'done';
  }

  /** A name in one of our own zones that is not found does not exist, once the zone has been read. */
  function answerElsewhere(query: Query, answer: Answer, target: Uint8Array, targetAt: number): Step | Later {
    const own = options.ownZoneOf(target);
    if (own === undefined) return options.follow(query, answer, copyOf(target));
    if (!reader.isReady(own.id)) {
      failNotReady(answer, own);
      return 'done';
    }
    if (ports.find(reader, target, target.length)) return answerPortBehindAlias(query, answer, target, targetAt, own);
    const host = findHost(reader, target, target.length, own.bytes.length);
    if (writeHost(answer, 'answer', { host: Math.max(host, emptyHost), type: query.type, owner: 0xc000 | targetAt }))
      return 'done';
    if (host !== noHost) return negativeBehindAlias(answer, own, target.length, targetAt);
    // RFC 6604 section 3: the code is that of the last name.
    answer.rcode = rcode.NXDOMAIN;
    return negativeBehindAlias(answer, own, target.length, targetAt);
  }

  function answerPortBehindAlias(query: Query, answer: Answer, target: Uint8Array, targetAt: number, own: Zone): Step {
    if (query.type !== recordType.SRV || ports.setAt < 0)
      return negativeBehindAlias(answer, own, target.length, targetAt);
    selector.setService(target, target.length);
    selector.onlyPort = ports.only;
    return answerSet(query, answer, ports.setAt, 0xc000 | targetAt, target);
  }

  /** RFC 2308 section 2.1: with the SOA of the zone in which the last name lies, which may be another than the first's. */
  function negativeBehindAlias(answer: Answer, own: Zone | undefined, nameLength: number, nameAt: number): Step {
    if (own === undefined) return 'done';
    const template = own.id === zone.id ? soa : new SoaTemplate(own);
    template.writeAt(answer, 'authority', reader.serial, nameAt + nameLength - own.bytes.length);
    return 'done';
  }

  function negative(query: Query, answer: Answer): Step {
    soa.write(answer, 'authority', query, reader.serial, apexBytes);
    return 'done';
  }

  function answerAny(answer: Answer): Step {
    answer.recordAt('answer', recordType.HINFO, zone.ttlSeconds, anyData, 0, anyData.length, questionOwner);
    return 'done';
  }

  /** RFC 2782: the addresses of each target, once, as far as whole sets fit. Targets stand at the end of their records. */
  function addGlue(answer: Answer, recordsAt: number, count: number, headBytes: number): void {
    const { bytes: catalog } = reader.names;
    let gluedCount = 0;
    let at = recordsAt;
    for (let i = 0; i < count && gluedCount < glueMax; i++) {
      const targetAt = at + 12 + headBytes;
      const end = at + 12 + ((answer.bytes[at + 10]! << 8) | answer.bytes[at + 11]!);
      at = end;
      if (targetAt - answer.start > pointerMax) return;
      const target = answer.bytes.subarray(targetAt, end);
      const entry = reader.names.find(target, target.length, hashBytes(target, 0, target.length));
      const host = entry < 0 ? findHost(reader, target, target.length, zone.bytes.length) : noHost;
      const found = Math.max(entry, host);
      if (found < 0 || glued.subarray(0, gluedCount).includes(found)) continue;
      glued[gluedCount++] = found;
      const owner = 0xc000 | (targetAt - answer.start);
      if (entry < 0) {
        writeHost(answer, 'additional', { host, type: undefined, owner });
        continue;
      }
      const start = reader.names.valueStart(entry);
      const length = reader.names.valueLength(entry);
      for (const type of addressTypes) {
        const setAt = findSet(catalog, start, length, type);
        if (setAt >= 0) selector.write(answer, 'additional', catalog, setAt, zone.ttlSeconds, owner);
      }
    }
  }

  return answerName;
}

const addressTypes = [recordType.A, recordType.AAAA] as const;
