// A zone on any server that takes dynamic updates (RFC 2136) and zone transfers (RFC 5936), both signed with TSIG: BIND,
// Knot, PowerDNS and many hosted ones. Each change carries its condition, so that the server itself keeps foreign names
// safe from us even if they appeared a moment ago.

import { ByteReader } from '../../base/dns/bytes.ts';
import { classAny, classIn, classNone, rcode, rcodeNames, recordType } from '../../base/dns/codes.ts';
import { decodeMessage, encodeMessage, type Message, type ResourceRecord } from '../../base/dns/message.ts';
import { decodeName } from '../../base/dns/name.ts';
import { exchangeOverTcp } from '../../base/dns/transport-tcp.ts';
import { signMessage, type TsigKey, verifyMessage, verifyNext } from '../../base/dns/tsig.ts';
import { formatAddress } from '../../base/net/ip.ts';
import type { Clock, Random, Timers } from '../../base/world.ts';
import { type NameChange, ownerText, type ZoneSet } from './difference.ts';
import type { ChangeResult, Provider } from './publisher.ts';
import { dataOf } from './wanted.ts';

export interface DnsConnection {
  /** Sends a message and hands on every message that comes back until one says it was the last. */
  exchange(message: Uint8Array, onMessage: (reply: Uint8Array) => 'more' | 'end'): Promise<void>;
}

/** Without a message for so long it is over. */
const idleMs = 10_000;

export function tcpConnection(server: { readonly host: string; readonly port: number }, timers: Timers): DnsConnection {
  return {
    exchange: (message, onMessage) => exchangeOverTcp({ server, timers, message, onMessage, limit: { idleMs } }),
  };
}

export interface Rfc2136Options {
  readonly zone: string;
  readonly key: TsigKey;
  readonly connect: () => DnsConnection;
  readonly clock: Clock;
  readonly random: Random;
  readonly owner: string;
  readonly ttlSeconds: number;
}

const opcodeUpdate = 5 << 11;
/** The ways a server says that a condition did not hold. */
const conflictCodes = new Set<number>([rcode.NXDOMAIN, rcode.YXDOMAIN, rcode.YXRRSET, rcode.NXRRSET]);
const changesPerMessage = 100;

export function createRfc2136Provider(options: Rfc2136Options): Provider {
  const nowSeconds = () => Math.floor(options.clock.wallMs() / 1000);
  const newId = () => {
    const bytes = options.random.bytes(2);
    return (bytes[0]! << 8) | bytes[1]!;
  };

  async function update(changes: readonly NameChange[]): Promise<ChangeResult> {
    const { message, mac } = signMessage(encodeMessage(updateMessage(changes, newId(), options)), options.key, {
      timeSeconds: nowSeconds(),
    });
    let result: ChangeResult = { kind: 'failed', why: 'no reply' };
    await options.connect().exchange(message, (reply) => {
      const verdict = verifyMessage(reply, { keys: [options.key], timeSeconds: nowSeconds(), requestMac: mac });
      const code = reply[3]! & 15;
      if (verdict.kind === 'bad') result = { kind: 'failed', why: `reply not trusted: ${verdict.why}` };
      else if (code === rcode.NOERROR) {
        // Only a signed "yes" is one.
        result = verdict.kind === 'good' ? { kind: 'done' } : { kind: 'failed', why: 'reply is not signed' };
      } else if (conflictCodes.has(code)) result = { kind: 'conflict' };
      else result = { kind: 'failed', why: `server returned ${rcodeNames[code] ?? code}` };
      return 'end';
    });
    return result;
  }

  /** Many changes in one message; if that one fails, one by one, so that one bad name does not hold up the others. */
  async function applySome(changes: readonly NameChange[]): Promise<ChangeResult[]> {
    const together = await update(changes);
    if (together.kind === 'done' || changes.length === 1) return changes.map(() => together);
    const results: ChangeResult[] = [];
    for (const change of changes) results.push(await update([change]));
    return results;
  }

  return {
    read: async () => zoneSets(await transfer(options, newId(), nowSeconds)),
    apply: async (changes) => {
      const results: ChangeResult[] = [];
      for (let at = 0; at < changes.length; at += changesPerMessage) {
        results.push(...(await applySome(changes.slice(at, at + changesPerMessage))));
      }
      return results;
    },
  };
}

function updateMessage(changes: readonly NameChange[], id: number, options: Rfc2136Options): Message {
  const conditions: ResourceRecord[] = [];
  const updates: ResourceRecord[] = [];
  const none = new Uint8Array(0);
  for (const change of changes) {
    const { name, ownerName } = change;
    const text = textData(ownerText(options.owner, name));
    if (change.kind === 'create') {
      // RFC 2136 section 2.4.5: the name, and the one beside it, are not in use.
      for (const free of [name, ownerName])
        conditions.push({ name: free, type: recordType.ANY, class: classNone, ttl: 0, rdata: none });
      updates.push({ name: ownerName, type: recordType.TXT, class: classIn, ttl: options.ttlSeconds, rdata: text });
    } else {
      // RFC 2136 section 2.4.2: the owner's text is there and says it is ours.
      conditions.push({ name: ownerName, type: recordType.TXT, class: classIn, ttl: 0, rdata: text });
      for (const old of [recordType.A, recordType.AAAA, recordType.CNAME]) {
        updates.push({ name, type: old, class: classAny, ttl: 0, rdata: none });
      }
    }
    if (change.kind === 'delete')
      updates.push({ name: ownerName, type: recordType.TXT, class: classAny, ttl: 0, rdata: none });
    for (const set of change.sets) {
      for (const value of set.values) {
        updates.push({
          name,
          type: recordType[set.type],
          class: classIn,
          ttl: options.ttlSeconds,
          rdata: dataOf(set.type, value),
        });
      }
    }
  }
  return {
    id,
    flags: opcodeUpdate,
    questions: [{ name: options.zone, type: recordType.SOA, class: classIn }],
    answers: conditions,
    authorities: updates,
    additionals: [],
  };
}

async function transfer(options: Rfc2136Options, id: number, nowSeconds: () => number): Promise<ResourceRecord[]> {
  const query = encodeMessage({
    id,
    flags: 0,
    questions: [{ name: options.zone, type: recordType.AXFR, class: classIn }],
    answers: [],
    authorities: [],
    additionals: [],
  });
  const signed = signMessage(query, options.key, { timeSeconds: nowSeconds() });
  const records: ResourceRecord[] = [];
  let mac = signed.mac;
  let isFirst = true;
  let unsigned: Uint8Array[] = [];
  await options.connect().exchange(signed.message, (reply) => {
    const check = { keys: [options.key], timeSeconds: nowSeconds(), requestMac: mac };
    const verdict = isFirst ? verifyMessage(reply, check) : verifyNext(reply, { ...check, unsigned });
    const { flags, answers } = decodeMessage(reply);
    if ((flags & 15) !== 0)
      throw new Error(`transfer of ${options.zone}: server returned ${rcodeNames[flags & 15] ?? flags & 15}`);
    if (verdict.kind === 'bad') throw new Error(`transfer of ${options.zone}: ${verdict.why}`);
    if (verdict.kind === 'unsigned' && isFirst) throw new Error(`transfer of ${options.zone}: the reply is not signed`);
    if (verdict.kind === 'good') {
      mac = verdict.mac;
      unsigned = [];
    } else unsigned.push(reply);
    isFirst = false;
    records.push(...answers);
    // RFC 5936 section 2.2: it ends with the SOA it began with.
    const isEnd = records.length > 1 && records.at(-1)!.type === recordType.SOA;
    if (isEnd && unsigned.length > 0) throw new Error(`transfer of ${options.zone}: its end is not signed`);
    return isEnd ? 'end' : 'more';
  });
  return records;
}

function zoneSets(records: readonly ResourceRecord[]): ZoneSet[] {
  const known: Record<number, ZoneSet['type']> = {
    [recordType.A]: 'A',
    [recordType.AAAA]: 'AAAA',
    [recordType.CNAME]: 'CNAME',
    [recordType.TXT]: 'TXT',
  };
  const sets = new Map<string, { name: string; type: ZoneSet['type']; ttl: number; values: string[] }>();
  for (const record of records) {
    const kind = known[record.type] ?? 'other';
    const key = `${record.name} ${kind}`;
    const set = sets.get(key) ?? { name: record.name, type: kind, ttl: record.ttl, values: [] };
    sets.set(key, set);
    set.values.push(valueText(kind, record.rdata));
  }
  return [...sets.values()];
}

function valueText(kind: ZoneSet['type'], rdata: Uint8Array): string {
  if (kind === 'A' || kind === 'AAAA') return formatAddress(rdata);
  if (kind === 'CNAME') return decodeName(rdata);
  if (kind === 'TXT') return textOf(rdata);
  return Buffer.from(rdata).toString('hex');
}

/** A text of any length, in strings of at most 255 bytes. */
function textData(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 255) {
    const part = bytes.subarray(at, at + 255);
    parts.push(Buffer.from([part.length]), part);
  }
  return Buffer.concat(parts);
}

function textOf(rdata: Uint8Array): string {
  const reader = new ByteReader(rdata);
  let text = '';
  while (!reader.isAtEnd) text += Buffer.from(reader.raw(reader.u8())).toString('utf8');
  return text;
}
