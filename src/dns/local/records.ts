// Static records as text: a hosts file, or records one per line (`db.corp.example A 10.0.0.7`). Pure. Read in pieces, because
// a file may have 100,000 lines.

import { ByteWriter } from '../../base/dns/bytes.ts';
import { parseType, recordType } from '../../base/dns/codes.ts';
import { withoutFinalDot } from '../../base/dns/labels.ts';
import { decodeName, encodeName, NameError, reverseName } from '../../base/dns/name.ts';
import { parseAddress } from '../../base/net/ip.ts';
import type { Pieces } from '../../base/turns.ts';
import { order, plainRecord, type RecordSet } from '../../catalog/names/answers.ts';

/** In all files together. */
const localLinesMax = 100_000;
const linesPerPiece = 500;
const textMax = 16 << 20;
/** Records of one type. */
const recordsPerNameMax = 100;
/** Lists of names to block give all of them one address: its first names are enough. */
const pointersMax = 8;

interface LocalRecord {
  readonly type: number;
  readonly rdata: Uint8Array;
}

/** By name: lower case, without a trailing dot. */
export type LocalRecords = Map<string, LocalRecord[]>;

type ReadRecords = (text: string, where: string) => Pieces<LocalRecords>;

/** `10.0.0.7 db.corp.example db`; addresses lead back to the first name of their line. */
export const readHosts: ReadRecords = (text, where) => readLines(text, where, '#', hostsLine);

/** `name TYPE data`, `name IN TYPE data`; data of any type as `\# 4 0a000007` (RFC 3597). */
export const readRecords: ReadRecords = (text, where) => readLines(text, where, ';', recordLine);

type ReadLine = (line: string, add: (name: string, record: LocalRecord) => void) => void;

function* readLines(text: string, where: string, comment: string, readLine: ReadLine): Pieces<LocalRecords> {
  if (text.length > textMax) throw new Error(`${where}: at most ${textMax >> 20} MiB are read`);
  const records: LocalRecords = new Map();
  const add = (name: string, record: LocalRecord) => {
    const known = records.get(name);
    if (known) known.push(record);
    else records.set(name, [record]);
  };
  let number = 0;
  for (let at = 0; at < text.length; ) {
    const found = text.indexOf('\n', at);
    const end = found < 0 ? text.length : found;
    number += 1;
    if (number > localLinesMax) throw new Error(`${where}: at most ${localLinesMax} lines are read`);
    const line = withoutComment(text.slice(at, end), comment);
    try {
      if (line !== '') readLine(line, add);
    } catch (cause) {
      throw new Error(`${where} line ${number}: ${(cause as Error).message}`, { cause });
    }
    at = end + 1;
    if (number % linesPerPiece === 0) yield;
  }
  return records;
}

/** A mark inside quotes is none. */
function withoutComment(line: string, mark: string): string {
  let isQuoted = false;
  for (let i = 0; i < line.length; i++) {
    if (line[i] === '\\') i += 1;
    else if (line[i] === '"') isQuoted = !isQuoted;
    else if (line[i] === mark && !isQuoted) return line.slice(0, i).trim();
  }
  return line.trim();
}

const hostsLine: ReadLine = (line, add) => {
  const [text = '', ...names] = line.split(/\s+/);
  // A link-local address is of one link, and means nothing to others.
  if (text.includes('%')) return;
  const rdata = parseAddress(text);
  if (!rdata) throw new Error(`${text}: want an address and its names, such as 10.0.0.7 db.corp.example`);
  if (names.length === 0) throw new Error(`${text}: it has no name`);
  const type = rdata.length === 4 ? recordType.A : recordType.AAAA;
  for (const name of names) add(checkedName(name), { type, rdata });
  add(reverseName(rdata), { type: recordType.PTR, rdata: encodeName(names[0]!) });
};

const recordLine: ReadLine = (line, add) => {
  const [name = '', ...rest] = tokensOf(line);
  if (/^\d+$/.test(rest[0] ?? ''))
    throw new Error(`${line}: want NAME TYPE DATA; the TTL of all of them is --local-ttl`);
  if (rest[0]?.toUpperCase() === 'IN') rest.shift();
  const [typeText = '', ...data] = rest;
  const type = parseType(typeText);
  if (type === undefined || type === 0 || refused.has(type))
    throw new Error(`${typeText || line}: want NAME TYPE DATA, such as db.corp.example A 10.0.0.7`);
  add(checkedName(name), { type, rdata: rdataOf(type, data) });
};

/** Types of questions and of signatures; a SOA is made for each name. */
const refused: ReadonlySet<number> = new Set([
  recordType.SOA,
  recordType.OPT,
  recordType.RRSIG,
  ...[recordType.TSIG, recordType.IXFR, recordType.AXFR, recordType.ANY],
]);

function tokensOf(line: string): string[] {
  return line.match(/"(?:\\.|[^"\\])*"|[^\s"]+/g) ?? [];
}

function rdataOf(type: number, data: readonly string[]): Uint8Array {
  if (data[0] === '\\#') return plainBytes(data);
  const text = data.join(' ');
  const want = wanted[type];
  if (want === undefined) throw new Error(`${text}: data of this type is given as \\# LENGTH HEX (RFC 3597)`);
  const made = want.make(data);
  if (made === undefined) throw new Error(`${text}: want ${want.text}`);
  return made;
}

function plainBytes([, length = '', ...hex]: readonly string[]): Uint8Array {
  const bytes = Buffer.from(hex.join(''), 'hex');
  if (bytes.length !== Number(length) || 2 * bytes.length !== hex.join('').length || bytes.length > 60_000)
    throw new Error(`\\# ${length} ${hex.join(' ')}: want as many bytes in hex as the length says`);
  return bytes;
}

interface Wanted {
  readonly text: string;
  /** Undefined if the data is not of that kind. */
  make(data: readonly string[]): Uint8Array | undefined;
}

const oneName: Wanted = { text: 'one name', make: ([name, more]) => (name && !more ? nameBytes(name) : undefined) };

const wanted: Readonly<Record<number, Wanted>> = {
  [recordType.A]: { text: 'an IPv4 address', make: (data) => addressOf(data, 4) },
  [recordType.AAAA]: { text: 'an IPv6 address', make: (data) => addressOf(data, 16) },
  [recordType.CNAME]: oneName,
  [recordType.PTR]: oneName,
  [recordType.NS]: oneName,
  [recordType.TXT]: { text: 'texts of up to 255 bytes each, in quotes', make: textsOf },
  [recordType.MX]: { text: 'PREFERENCE NAME', make: (data) => numbersAndName(data, 1) },
  [recordType.SRV]: { text: 'PRIORITY WEIGHT PORT NAME', make: (data) => numbersAndName(data, 3) },
};

function addressOf([text = '', more]: readonly string[], size: number): Uint8Array | undefined {
  const bytes = parseAddress(text);
  return bytes?.length === size && more === undefined ? bytes : undefined;
}

function textsOf(data: readonly string[]): Uint8Array | undefined {
  const writer = new ByteWriter();
  for (const each of data) {
    const bytes = Buffer.from(each.startsWith('"') ? each.slice(1, -1).replace(/\\(.)/g, '$1') : each);
    if (bytes.length > 255) return undefined;
    writer.u8(bytes.length).raw(bytes);
  }
  return data.length === 0 ? undefined : writer.copy();
}

function numbersAndName(data: readonly string[], count: number): Uint8Array | undefined {
  if (data.length !== count + 1) return undefined;
  const writer = new ByteWriter();
  for (const text of data.slice(0, count)) {
    if (!/^\d{1,5}$/.test(text) || Number(text) > 0xffff) return undefined;
    writer.u16(Number(text));
  }
  return writer.raw(nameBytes(data[count]!)).copy();
}

function checkedName(text: string): string {
  if (text.startsWith('*')) throw new Error(`${text}: for all names below another use a template with a suffix`);
  const bytes = nameBytes(text);
  return text.includes('\\') ? decodeName(bytes) : withoutFinalDot(text).toLowerCase();
}

function nameBytes(text: string): Uint8Array {
  try {
    return encodeName(text);
  } catch (error) {
    if (error instanceof NameError) throw new Error(error.message);
    throw error;
  }
}

/** All sources together; throws if they contradict each other. */
export function* mergeRecords(sources: readonly LocalRecords[]): Pieces<LocalRecords> {
  const [first = new Map() as LocalRecords, ...others] = [...sources].sort((one, other) => other.size - one.size);
  let count = 0;
  for (const other of others) {
    for (const [name, records] of other) {
      first.set(name, [...(first.get(name) ?? []), ...records]);
      if (++count % linesPerPiece === 0) yield;
    }
  }
  for (const [name, records] of first) {
    if (records.length > 1) setsOf(records, name);
    if (++count % linesPerPiece === 0) yield;
  }
  return first;
}

/** As the table has them. The same record twice is one. */
export function setsOf(records: readonly LocalRecord[], name: string): RecordSet[] {
  const types = new Map<number, Map<string, Uint8Array>>();
  for (const { type, rdata } of records) {
    const known = types.get(type) ?? new Map<string, Uint8Array>();
    types.set(type, known);
    if (known.size < (type === recordType.PTR ? pointersMax : recordsPerNameMax))
      known.set(Buffer.from(rdata).toString('latin1'), rdata);
    else if (type !== recordType.PTR) throw new Error(`${name}: at most ${recordsPerNameMax} records of one type`);
  }
  if (types.has(recordType.CNAME) && (types.size > 1 || types.get(recordType.CNAME)!.size > 1))
    throw new Error(`${name}: a name with a CNAME has no other records (RFC 1034 section 3.6.2)`);
  return [...types].map(([type, known]) => {
    const isAddress = type === recordType.A || type === recordType.AAAA;
    const how = isAddress ? order.rotating : order.fixed;
    return { type, order: how, records: [...known.values()].map((rdata) => plainRecord(rdata)) };
  });
}
