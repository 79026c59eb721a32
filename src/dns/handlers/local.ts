// Names that the operator of this server gives it: static records and hosts, then rules. Each name with records is a zone of one name:
// it has these and no others. What the cluster and federations answer goes first, names of addresses too.

import { classAny, classIn, rcode, recordType } from '../../base/dns/codes.ts';
import { encodeName, isWithin, NameError } from '../../base/dns/name.ts';
import { parseAddress } from '../../base/net/ip.ts';
import { txtData } from '../../catalog/names/answers.ts';
import type { Standpoint } from '../../catalog/packed/places.ts';
import { type Matched, RuleMatcher } from '../local/matcher.ts';
import type { LocalRule } from '../local/rules.ts';
import { localZone } from '../local/table.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Later, Step } from '../message/handler.ts';
import { SoaTemplate } from '../message/soa.ts';
import { extendedError, headerBytes, type Query } from '../message/wire.ts';
import type { StubZones } from '../stub-zones/stub-zones.ts';
import type { CatalogReader } from '../zones/reader.ts';
import { createZoneAnswers } from '../zones/zone-answers.ts';
import { reverseTrees } from './reverse.ts';

export interface LocalConfig {
  readonly ttlSeconds: number;
  readonly rules: readonly LocalRule[];
}

export interface LocalHandlerOptions extends LocalConfig {
  /** Static records. */
  readonly records: CatalogReader;
  /** The cluster's names, for those of addresses. */
  readonly reader: CatalogReader;
  readonly stubZones: StubZones;
  readonly follow: (query: Query, answer: Answer, target: Uint8Array) => Step | Later;
}

const questionOwner = 0xc000 | headerBytes;
const nowhere: Standpoint = { cluster: 0, zone: 0, region: 0 };

export function localHandler(options: LocalHandlerOptions): Handler {
  const { records, reader, stubZones, follow, ttlSeconds } = options;
  const zone = localZone(ttlSeconds);
  const soa = new SoaTemplate(zone, { isSingleName: true });
  const answerName = createZoneAnswers({
    ...{ zone, soa, follow, reader: records },
    standpointOf: () => nowhere,
    ownZoneOf: () => undefined,
    doAliasesLeave: true,
  });
  const matcher = options.rules.length > 0 ? new RuleMatcher(options.rules) : undefined;

  function handle(query: Query, answer: Answer): Step | Later {
    const { name, nameLength, nameHash } = query;
    if (query.class !== classIn && query.class !== classAny) return 'next';
    const entry = records.names.find(name, nameLength, nameHash);
    // What an alias leads to is not rewritten again.
    const matched = entry < 0 && !query.isInner ? matcher?.find(name, nameLength) : undefined;
    if ((entry < 0 && !matched) || isOfOthers(query)) return 'next';
    answer.isAuthoritative = true;
    return matched ? answerRule(query, answer, matched) : answerName(query, answer, entry, nameLength);
  }

  function isOfOthers({ name, nameLength, nameHash }: Query): boolean {
    if (stubZones.find(name, nameLength)?.sendsSource) return true;
    const isReverse = reverseTrees.some((tree) => isWithin(name, nameLength, tree));
    return isReverse && reader.names.find(name, nameLength, nameHash) >= 0;
  }

  function answerRule(query: Query, answer: Answer, matched: Matched): Step | Later {
    const { result } = matched.rule;
    if (result.kind === 'rewrite') return answerRewrite(query, answer, matched);
    if (result.kind === 'rcode') answer.rcode = result.rcode;
    let isAnswered = false;
    if (result.kind === 'records') {
      for (const [index, [type]] of result.records.entries()) {
        if (type !== query.type) continue;
        const rdata = rdataOf(type, matched.texts[index]!);
        if (!rdata) continue;
        isAnswered = true;
        const isWritten = answer.recordAt('answer', type, ttlSeconds, rdata, 0, rdata.length, questionOwner);
        if (!isWritten) answer.isTruncated = true;
      }
    }
    if (isAnswered || answer.rcode === rcode.REFUSED || answer.rcode === rcode.SERVFAIL) return 'done';
    soa.writeAt(answer, 'authority', records.serial, headerBytes + matched.headBytes);
    return 'done';
  }

  function answerRewrite(query: Query, answer: Answer, { texts, headBytes }: Matched): Step | Later {
    const target = targetOf(query, texts[0]!, headBytes);
    if (target === undefined) {
      answer.fail(rcode.SERVFAIL, extendedError.other, 'the rewritten name is too long or has an empty label');
      return 'done';
    }
    answer.recordAt('answer', recordType.CNAME, ttlSeconds, target, 0, target.length, questionOwner);
    return query.type === recordType.CNAME || query.type === recordType.ANY ? 'done' : follow(query, answer, target);
  }

  return { name: 'local', handle };
}

/** With the labels that stand before the suffix. */
function targetOf({ name }: Query, to: string, headBytes: number): Uint8Array | undefined {
  try {
    const tail = encodeName(to);
    const target = Buffer.concat([name.subarray(0, headBytes), tail]);
    return target.length <= name.length ? target : undefined;
  } catch (error) {
    if (error instanceof NameError) return undefined;
    throw error;
  }
}

/** What a pattern makes may be no address. */
function rdataOf(type: number, text: string): Uint8Array | undefined {
  if (type === recordType.TXT) return txtData(text);
  const bytes = parseAddress(text);
  return bytes?.length === (type === recordType.A ? 4 : 16) ? bytes : undefined;
}
