// Names of peers' services in other people's domains. Each is an island: that name is answered here and with
// authority, and so are the ports below it (`_http._tcp.db.example`); all other names go on to where they are at
// home. Until it is known what peers share, names that may be islands are answered with SERVFAIL.

import { hashBytes, isWithin } from '../../base/dns/name.ts';
import { zoneMark } from '../../catalog/answers.ts';
import { namesOutside } from '../../catalog/peer-table.ts';
import type { Answer } from '../answer.ts';
import type { Handler, Later, Step } from '../handler.ts';
import { SoaTemplate } from '../soa.ts';
import type { StubZones } from '../stub-zones.ts';
import { classAny, classIn, extendedError, type Query, rcode } from '../wire.ts';
import { createZoneAnswers, type ZoneAnswersOptions } from '../zone-answers.ts';

export interface IslandHandlerOptions extends Omit<ZoneAnswersOptions, 'soa'> {
  readonly name: string;
  /** Where no island can be. */
  readonly elsewhere: readonly Uint8Array[];
  readonly stubZones: StubZones;
}

const underscore = 0x5f;
const transports = ['_tcp', '_udp', '_sctp'].map((label) => Buffer.from(label));

export function islandHandler(options: IslandHandlerOptions): Handler {
  const { zone, reader, stubZones } = options;
  const answerName = createZoneAnswers({ ...options, soa: new SoaTemplate(zone, { isIsland: true }) });

  function handle(query: Query, answer: Answer): Step | Later {
    if (query.class !== classIn && query.class !== classAny) return 'next';
    const { name, nameLength } = query;
    const entry = reader.names.find(name, nameLength, query.nameHash);
    const portsEnd = name[1] === underscore ? endOfPorts(name) : 0;
    const apexLength = nameLength - portsEnd;
    const isIsland = entry >= 0 ? isIslandAt(entry) : portsEnd > 0 && isIslandAt(find(name, portsEnd, nameLength));
    if (!isIsland) return reader.isReady(namesOutside) || cannotBe(query) ? 'next' : holdBack(answer);
    // A federation's names are its own, whoever else claims them.
    if (stubZones.find(name, nameLength)?.sendsSource) return 'next';
    answer.zone = zone.id;
    answer.isAuthoritative = true;
    if (reader.isStale(zone.id)) answer.extendedError = extendedError.staleAnswer;
    return answerName(query, answer, entry, apexLength);
  }

  function find(name: Uint8Array, start: number, end: number): number {
    return reader.names.find(name.subarray(start, end), end - start, hashBytes(name, start, end));
  }

  function isIslandAt(entry: number): boolean {
    return entry >= 0 && (reader.names.bytes[reader.names.valueStart(entry)]! & zoneMark.island) !== 0;
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
