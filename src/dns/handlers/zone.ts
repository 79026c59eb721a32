// Answers one zone from the catalog; until it has been read once, from what an earlier process left, and what that did not
// know with SERVFAIL. A stub zone that lies in it is not its own: the longest zone that fits a name decides.

import { classAny, classIn, rcode } from '../../base/dns/codes.ts';
import { isWithin } from '../../base/dns/name.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Later, Step } from '../message/handler.ts';
import { SoaTemplate } from '../message/soa.ts';
import { extendedError, type Query } from '../message/wire.ts';
import type { StubZones } from '../stub-zones/stub-zones.ts';
import {
  createOldAnswers,
  createZoneAnswers,
  failNotReady,
  type OldView,
  type ZoneAnswersOptions,
} from '../zones/zone-answers.ts';

export interface ZoneHandlerOptions extends Omit<ZoneAnswersOptions, 'soa'> {
  readonly name: string;
  readonly stubZones: StubZones;
  readonly old?: OldView;
}

export function zoneHandler(options: ZoneHandlerOptions): Handler {
  const { zone, reader, stubZones } = options;
  const soa = new SoaTemplate(zone);
  const answerName = createZoneAnswers({ ...options, soa });
  const answerOld = createOldAnswers({ ...options, soa }, options.old);

  let stubsVersion = -1;
  let hasStubs = false;

  /** Looks the zones through again only when they are others. */
  function isOfStub({ name, nameLength }: Query): boolean {
    if (stubsVersion !== stubZones.version) {
      stubsVersion = stubZones.version;
      hasStubs = stubZones.hasBelow(zone.bytes);
    }
    return hasStubs && stubZones.isBelow(zone.bytes, name, nameLength);
  }

  function handle(query: Query, answer: Answer): Step | Later {
    if (!isWithin(query.name, query.nameLength, zone.bytes) || isOfStub(query)) return 'next';
    answer.zone = zone.id;
    if (query.class !== classIn && query.class !== classAny) {
      answer.fail(rcode.REFUSED, extendedError.notSupported, 'only class IN is served');
      return 'done';
    }
    if (!reader.isReady(zone.id)) return answerOld(query, answer, zone.bytes.length) ?? notReady(answer);
    answer.isAuthoritative = true;
    if (reader.isStale(zone.id)) answer.extendedError = extendedError.staleAnswer;
    const entry = reader.names.find(query.name, query.nameLength, query.nameHash);
    return answerName(query, answer, entry, zone.bytes.length);
  }

  function notReady(answer: Answer): Step {
    failNotReady(answer, zone);
    return 'done';
  }

  return { name: options.name, handle };
}
