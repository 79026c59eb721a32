// Transfers of a federation's zone to its secondaries (RFC 5936), signed if they have a key (RFC 8945). A zone is given as it is
// seen from outside all clusters: external addresses, in no order. IXFR gets the whole zone, or that there is nothing new
// (RFC 1995).

import { classIn, rcode, recordType } from '../../base/dns/codes.ts';
import { encodeMessage, type ResourceRecord, tryDecodeMessage } from '../../base/dns/message.ts';
import { decodeName, encodeName, isWithin } from '../../base/dns/name.ts';
import { signMessage, signNext } from '../../base/dns/tsig.ts';
import type { Clock } from '../../base/world.ts';
import { audience, unpackAnswers } from '../../catalog/names/answers.ts';
import type { Zone } from '../../catalog/names/zones.ts';
import { parseServerAddress, type TransferConfig } from '../config/config.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Later, Step } from '../message/handler.ts';
import { soaData } from '../message/soa.ts';
import { extendedError, type Query, udpPayloadMax } from '../message/wire.ts';
import { createAddressFilter } from '../source/address-filter.ts';
import type { CatalogReader } from '../zones/reader.ts';

export interface TransferHandlerOptions extends TransferConfig {
  readonly reader: CatalogReader;
  readonly zones: readonly Zone[];
  readonly clock: Clock;
}

/** In each thread at the same time. */
const transfersMax = 4;
/** Larger messages would hold the thread longer. */
const messageBytes = 16_000;
const flagsAnswer = 0x8400;

export function transferHandler({ reader, zones, keys, secondaries, clock }: TransferHandlerOptions): Handler {
  const isSecondary = createAddressFilter(secondaries.map((text) => parseServerAddress(text).host));
  let transfers = 0;

  function handle(query: Query, answer: Answer): Step | Later {
    if (query.type !== recordType.AXFR && query.type !== recordType.IXFR) return 'next';
    const zone = zones.find(
      ({ bytes }) => bytes.length === query.nameLength && isWithin(query.name, query.nameLength, bytes),
    );
    const isSigned = keys.length === 0 || query.transferKey !== '';
    if (!zone || query.class !== classIn || !isSecondary(query.clientAddress) || !isSigned) return 'next';
    if (!reader.isReady(zone.id)) {
      answer.fail(rcode.SERVFAIL, extendedError.notReady, `${zone.name} has not been read yet`);
      return 'done';
    }
    const isStream = query.transport === 'tcp' || query.transport === 'tls';
    if (query.type === recordType.IXFR && (!isStream || isUpToDate(query, reader.serial))) {
      const soa = {
        owner: zone.bytes,
        type: recordType.SOA,
        ttl: zone.ttlSeconds,
        rdata: soaData(zone, reader.serial),
      };
      answer.isAuthoritative = true;
      answer.recordOf('answer', soa);
      return 'done';
    }
    if (!isStream || transfers >= transfersMax) {
      answer.fail(rcode.REFUSED, extendedError.other, isStream ? 'too many transfers at once' : 'a transfer wants TCP');
      return 'done';
    }
    transfers += 1;
    return transfer(messagesOf(query, answer, zone));
  }

  function transfer(messages: Generator<Uint8Array>): Later {
    const counted = countDown(messages, () => (transfers -= 1));
    return { take: (take) => take(undefined, counted) };
  }

  function* messagesOf(query: Query, { signature }: Answer, zone: Zone): Generator<Uint8Array> {
    const { id, type } = query;
    const hasEdns = query.hasEdns;
    let lastMac = signature?.requestMac;
    let isFirst = true;
    for (const answers of batches(recordsOf(reader, zone))) {
      const questions = isFirst ? [{ name: zone.name, type, class: classIn }] : [];
      const additionals = isFirst && hasEdns ? [emptyOpt] : [];
      const message = encodeMessage({ id, flags: flagsAnswer, questions, answers, authorities: [], additionals });
      if (signature === undefined || lastMac === undefined) yield message;
      else {
        const timeSeconds = Math.floor(clock.wallMs() / 1000);
        const signed = isFirst
          ? signMessage(message, signature.key, { timeSeconds, requestMac: lastMac })
          : signNext(message, signature.key, { timeSeconds, lastMac });
        lastMac = signed.mac;
        yield signed.message;
      }
      isFirst = false;
    }
  }

  return { name: 'transfer', handle };
}

const emptyOpt = { name: '.', type: recordType.OPT, class: udpPayloadMax, ttl: 0, rdata: new Uint8Array(0) };

/** Also when nobody takes the rest, and when it was never begun. */
function countDown(messages: Generator<Uint8Array>, onEnd: () => void): Iterator<Uint8Array> {
  let isOver = false;
  const end = () => {
    if (!isOver) onEnd();
    isOver = true;
  };
  return {
    next: () => {
      const result = messages.next();
      if (result.done) end();
      return result;
    },
    return: () => {
      end();
      return messages.return(undefined);
    },
  };
}

/** By the serial of the SOA that the client has. */
function isUpToDate(query: Query, serial: number): boolean {
  const [soa] = tryDecodeMessage(query.packet.subarray(0, query.length))?.authorities ?? [];
  if (soa?.type !== recordType.SOA || soa.rdata.length < 22) return false;
  const theirs = Buffer.from(soa.rdata).readUInt32BE(soa.rdata.length - 20);
  return ((theirs - serial) | 0) >= 0;
}

/**
 * The zone as it is now, between two SOAs. The serial is read first: what changes meanwhile has a higher one, and is
 * transferred again.
 */
function* recordsOf({ names, serial }: CatalogReader, zone: Zone): Generator<ResourceRecord> {
  const class_ = { class: classIn, ttl: zone.ttlSeconds };
  const soa = { name: zone.name, type: recordType.SOA, ...class_, rdata: soaData(zone, serial) };
  yield soa;
  for (const { key, value } of names.all()) {
    if (!isWithin(key, key.length, zone.bytes)) continue;
    const name = decodeName(key);
    const { sets } = unpackAnswers(value);
    for (const { type, records } of sets) {
      const seen = new Set<string>();
      for (const { audience: meant, rdata } of records) {
        const text = Buffer.from(rdata).toString('latin1');
        if (meant === audience.ownCluster || seen.has(text)) continue;
        seen.add(text);
        yield { name, type, ...class_, rdata };
      }
    }
  }
  yield soa;
}

function* batches(records: Iterable<ResourceRecord>): Generator<ResourceRecord[]> {
  let batch: ResourceRecord[] = [];
  let bytes = 0;
  for (const record of records) {
    const size = encodeName(record.name).length + 10 + record.rdata.length;
    if (bytes + size > messageBytes && batch.length > 0) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(record);
    bytes += size;
  }
  yield batch;
}
