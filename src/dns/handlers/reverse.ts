// PTR of the cluster's own addresses, those it gives to others' services among them. An address that is not ours is
// left to the next handler: somebody else knows it. Until they have been read, those that an earlier process knew are
// answered, as old.

import { encodeName, isWithin } from '../../base/dns/name.ts';
import { findSet, recordType } from '../../catalog/answers.ts';
import type { Zone } from '../../catalog/zones.ts';
import type { Answer } from '../answer.ts';
import type { Handler, Step } from '../handler.ts';
import type { CatalogReader } from '../reader.ts';
import { Selector } from '../select.ts';
import { extendedError, headerBytes, type Query, rcode } from '../wire.ts';

export const reverseTrees: readonly Uint8Array[] = [encodeName('in-addr.arpa'), encodeName('ip6.arpa')];

export interface ReverseHandlerOptions {
  readonly reader: CatalogReader;
  /** Whose addresses these are; its TTL is that of the answers. */
  readonly zone: Zone;
  /** Numbers of what must have been read before an address is taken for somebody else's. */
  readonly waitsFor: readonly number[];
  /** What an earlier process left. */
  readonly old?: CatalogReader;
}

export function reverseHandler(options: ReverseHandlerOptions): Handler {
  const { reader, zone, waitsFor, old } = options;
  const answerFrom = createPointerAnswers(zone, reader);
  const answerFromOld = old && createPointerAnswers(zone, old);

  function handle(query: Query, answer: Answer): Step {
    if (!reverseTrees.some((tree) => isWithin(query.name, query.nameLength, tree))) return 'next';
    const isRead = waitsFor.every((id) => reader.isReady(id));
    if (answerFromOld && old.isStale(zone.id) && !(isRead && reader.isReady(zone.id))) {
      if (answerFromOld(query, answer) === 'done') return 'done';
    }
    if (isRead) return answerFrom(query, answer);
    answer.fail(rcode.SERVFAIL, extendedError.notReady, `${zone.name} has not been read from its home yet`);
    return 'done';
  }

  return { name: 'reverse', handle };
}

function createPointerAnswers(zone: Zone, reader: CatalogReader): (query: Query, answer: Answer) => Step {
  const selector = new Selector(reader.places);
  const { names } = reader;
  return (query, answer) => {
    const entry = names.find(query.name, query.nameLength, query.nameHash);
    if (entry < 0) return 'next';
    answer.zone = zone.id;
    answer.isAuthoritative = true;
    if (reader.isStale(zone.id)) answer.extendedError = extendedError.staleAnswer;
    if (query.type !== recordType.PTR && query.type !== recordType.ANY) return 'done';
    const setAt = findSet(names.bytes, names.valueStart(entry), names.valueLength(entry), recordType.PTR);
    const isWritten = selector.write(answer, 'answer', names.bytes, setAt, zone.ttlSeconds, 0xc000 | headerBytes) >= 0;
    if (!isWritten) answer.truncate();
    return 'done';
  };
}
