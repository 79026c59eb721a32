// Types and records as people write them: names where there are any, TYPE123 and \# (RFC 3597) where there are none. For
// explanations and logs, not for the path.

import { recordType } from '../../base/dns/codes.ts';
import type { ResourceRecord } from '../../base/dns/message.ts';
import { decodeName } from '../../base/dns/name.ts';
import { formatAddress } from '../../base/net/ip.ts';

export function rdataText({ type, rdata }: Pick<ResourceRecord, 'type' | 'rdata'>): string {
  const bytes = Buffer.from(rdata);
  try {
    return textOf(type, bytes);
  } catch {
    return unknownText(bytes);
  }
}

function textOf(type: number, bytes: Buffer): string {
  switch (type) {
    case recordType.A:
    case recordType.AAAA:
      return formatAddress(bytes);
    case recordType.SRV:
      return `${bytes.readUInt16BE(0)} ${bytes.readUInt16BE(2)} ${bytes.readUInt16BE(4)} ${decodeName(bytes, 6)}`;
    case recordType.CNAME:
    case recordType.NS:
    case recordType.PTR:
    case recordType.DNAME:
      return decodeName(bytes);
    case recordType.MX:
      return `${bytes.readUInt16BE(0)} ${decodeName(bytes, 2)}`;
    case recordType.SOA:
      return soaText(bytes);
    case recordType.TXT:
    case recordType.HINFO:
    case recordType.SPF:
      return stringsIn(bytes).join(' ');
    case recordType.CAA:
      return caaText(bytes);
    default:
      return unknownText(bytes);
  }
}

/** Primary server, mailbox, serial, refresh, retry, expire, minimum. */
function soaText(bytes: Buffer): string {
  const mailboxAt = endOfName(bytes, 0);
  const numbersAt = endOfName(bytes, mailboxAt);
  const counts = [0, 4, 8, 12, 16].map((at) => bytes.readUInt32BE(numbersAt + at));
  return [decodeName(bytes, 0), decodeName(bytes, mailboxAt), ...counts].join(' ');
}

function endOfName(bytes: Uint8Array, start: number): number {
  let at = start;
  while (bytes[at]! !== 0) at += bytes[at]! + 1;
  return at + 1;
}

function stringsIn(bytes: Buffer): string[] {
  const texts: string[] = [];
  for (let at = 0; at < bytes.length; at += bytes[at]! + 1)
    texts.push(JSON.stringify(bytes.toString('utf8', at + 1, at + 1 + bytes[at]!)));
  return texts;
}

/** RFC 8659 section 4.1 */
function caaText(bytes: Buffer): string {
  const valueAt = 2 + bytes[1]!;
  return `${bytes[0]} ${bytes.toString('latin1', 2, valueAt)} ${JSON.stringify(bytes.toString('utf8', valueAt))}`;
}

function unknownText(bytes: Buffer): string {
  return `\\# ${bytes.length} ${bytes.toString('hex')}`.trim();
}
