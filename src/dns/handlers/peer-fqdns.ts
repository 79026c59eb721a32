// Names of peers' services in other people's domains. Each is a single name: it is answered here and with
// authority, and so are the ports below it (`_http._tcp.db.example`); all other names go on to where they are at
// home. Until it is known what peers share, those that an earlier process knew are answered as old, and names that may be
// single names with SERVFAIL.

import { classAny, classIn, rcode } from '../../base/dns/codes.ts';
import { hashBytes, isWithin } from '../../base/dns/name.ts';
import { zoneMark } from '../../catalog/names/answers.ts';
import { namesOutside } from '../../catalog/names/outside-gate.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Later, Step } from '../message/handler.ts';
import { SoaTemplate } from '../message/soa.ts';
import { extendedError, type Query } from '../message/wire.ts';
import type { StubZones } from '../stub-zones/stub-zones.ts';
import type { CatalogReader } from '../zones/reader.ts';
import { createOldAnswers, createZoneAnswers, type OldView, type ZoneAnswersOptions } from '../zones/zone-answers.ts';

export interface PeerFqdnOptions extends Omit<ZoneAnswersOptions, 'soa'> {
  readonly name: string;
  /** Where no such name can be. */
  readonly elsewhere: readonly Uint8Array[];
  readonly stubZones: StubZones;
  readonly old?: OldView;
}

const underscore = 0x5f;
const transports = ['_tcp', '_udp', '_sctp'].map((label) => Buffer.from(label));

export function peerFqdnHandler(options: PeerFqdnOptions): Handler {
  const { zone, reader, stubZones } = options;
  const soa = new SoaTemplate(zone, { isSingleName: true });
  const answerName = createZoneAnswers({ ...options, soa });
  const answerOld = createOldAnswers({ ...options, soa }, options.old);

  function handle(query: Query, answer: Answer): Step | Later {
    if (query.class !== classIn && query.class !== classAny) return 'next';
    const { name, nameLength } = query;
    const entry = reader.names.find(name, nameLength, query.nameHash);
    const portsEnd = name[1] === underscore ? endOfPorts(name) : 0;
    const apexLength = nameLength - portsEnd;
    if (!isSingleName(reader, query, entry, portsEnd)) {
      if (!reader.isReady(zone.id) && wasSingleName(query, portsEnd)) {
        answer.zone = zone.id;
        return answerOld(query, answer, apexLength) ?? holdBack(answer);
      }
      return reader.isReady(namesOutside) || cannotBe(query) ? 'next' : holdBack(answer);
    }
    // A federation's names are its own, whoever else claims them.
    if (stubZones.find(name, nameLength)?.sendsSource) return 'next';
    answer.zone = zone.id;
    answer.isAuthoritative = true;
    if (reader.isStale(zone.id)) answer.extendedError = extendedError.staleAnswer;
    return answerName(query, answer, entry, apexLength);
  }

  /** To an earlier process. */
  function wasSingleName(query: Query, portsEnd: number): boolean {
    const { reader: old } = options.old ?? {};
    if (!old?.isStale(zone.id) || stubZones.find(query.name, query.nameLength)?.sendsSource) return false;
    return isSingleName(old, query, old.names.find(query.name, query.nameLength, query.nameHash), portsEnd);
  }

  function cannotBe({ name, nameLength }: Query): boolean {
    if (options.elsewhere.some((other) => isWithin(name, nameLength, other))) return true;
    return stubZones.find(name, nameLength)?.sendsSource === true;
  }

  function holdBack(answer: Answer): Step {
    answer.fail(rcode.SERVFAIL, extendedError.notReady, 'what peers share has not been read from its home yet');
    return 'done';
  }

  return { name: options.name, handle };
}

/** Whether the name, which lies at `entry`, or the one whose port it would be, is a single name of a peer. */
function isSingleName(reader: CatalogReader, { name, nameLength }: Query, entry: number, portsEnd: number): boolean {
  const { names } = reader;
  if (entry >= 0) return isSingleNameAt(reader, entry);
  if (portsEnd === 0) return false;
  const host = name.subarray(portsEnd, nameLength);
  return isSingleNameAt(reader, names.find(host, host.length, hashBytes(name, portsEnd, nameLength)));
}

function isSingleNameAt({ names }: CatalogReader, entry: number): boolean {
  return entry >= 0 && (names.bytes[names.valueStart(entry)]! & zoneMark.singleName) !== 0;
}

/** Where the host's own name starts behind `_port._proto`; 0 if these labels are not of ports. */
function endOfPorts(name: Uint8Array): number {
  let last = 0;
  let at = 0;
  while (name[at] !== 0 && name[at + 1] === underscore) {
    last = at;
    at += name[at]! + 1;
  }
  const label = name.subarray(last + 1, at);
  return transports.some((transport) => Buffer.compare(transport, label) === 0) ? at : 0;
}
