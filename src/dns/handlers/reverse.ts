// PTR of the cluster's own addresses, those it gives to others' services among them. A foreign address is left to the
// next handler. Until they have been read, those that an earlier process knew are answered, as old; of the rest only
// addresses in the ranges that can be ours wait.

import { rcode, recordType } from '../../base/dns/codes.ts';
import { addressOfReverse, encodeName, isWithin } from '../../base/dns/name.ts';
import { findSet } from '../../catalog/names/answers.ts';
import type { Zone } from '../../catalog/names/zones.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Step } from '../message/handler.ts';
import { extendedError, headerBytes, type Query } from '../message/wire.ts';
import { createAddressFilter } from '../source/address-filter.ts';
import type { CatalogReader } from '../zones/reader.ts';
import { Selector } from '../zones/select.ts';

export const reverseTrees: readonly Uint8Array[] = [encodeName('in-addr.arpa'), encodeName('ip6.arpa')];

export interface ReverseHandlerOptions {
  readonly reader: CatalogReader;
  /** The zone of these addresses; its TTL is that of the answers. */
  readonly zone: Zone;
  /** Numbers of the zones that must have been read before an address counts as foreign. */
  readonly waitsFor: readonly number[];
  /** The copy left by an earlier process. */
  readonly old?: CatalogReader;
  /** Ranges in which the cluster's addresses can lie. */
  readonly ownRanges?: readonly string[];
}

/** Addresses that clusters give out: private, shared, link-local, benchmarking and reserved ones. */
const defaultOwnRanges: readonly string[] = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  '198.18.0.0/15',
  '240.0.0.0/4',
  'fc00::/7',
  'fe80::/10',
];

/** Addresses that only a clusterset gives out. Where another server knows those of the cluster, no others can be ours. */
export const virtualRanges: readonly string[] = ['240.0.0.0/4', 'fd70:6f72:7400::/40'];

export function reverseHandler(options: ReverseHandlerOptions): Handler {
  const { reader, zone, waitsFor, old } = options;
  const answerFrom = createPointerAnswers(zone, reader);
  const answerFromOld = old && createPointerAnswers(zone, old);
  const canBeOurs = createAddressFilter(options.ownRanges ?? defaultOwnRanges);

  function handle(query: Query, answer: Answer): Step {
    if (!reverseTrees.some((tree) => isWithin(query.name, query.nameLength, tree))) return 'next';
    const isRead = waitsFor.every((id) => reader.isReady(id));
    if (answerFromOld && old.isStale(zone.id) && !(isRead && reader.isReady(zone.id))) {
      if (answerFromOld(query, answer) === 'done') return 'done';
    }
    if (isRead) return answerFrom(query, answer);
    const address = addressOfReverse(query.name, query.nameLength);
    if (address !== undefined && !canBeOurs(address)) return 'next';
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
    selector.write(answer, 'answer', names.bytes, setAt, zone.ttlSeconds, 0xc000 | headerBytes);
    return 'done';
  };
}
