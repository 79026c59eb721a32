// Domain names as they stand in messages: length-prefixed labels, lower case, ending in the root. Text is only for people.
// Everything that looks names up works on these bytes, so no query ever makes a string.

import { formatAddress } from '../net/ip.ts';

export const nameBytesMax = 255;
export const labelBytesMax = 63;

/** Length bytes are at most 63 and so below `A`: a whole name can be lowered byte by byte without finding its labels. */
export const lowerCase: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 65 && byte <= 90 ? byte + 32 : byte,
);

export class NameError extends Error {}

/** Lower-case bytes of a dotted name; a trailing dot is allowed. `\.` and `\123` stand for bytes that would confuse. */
export function encodeName(text: string): Uint8Array {
  if (text === '' || text === '.') return new Uint8Array(1);
  return encodePlain(text) ?? encodeEscaped(text);
}

function encodePlain(text: string): Uint8Array | undefined {
  if (text.length + 2 > nameBytesMax) return undefined;
  const bytes = new Uint8Array(text.length + 2);
  return writePlain(text, bytes) ? bytes : undefined;
}

/**
 * The common case in one pass: plain letters, no trailing dot, nothing too long. Anything else is left to the careful way.
 * Writes all but the root.
 */
function writePlain(text: string, bytes: Uint8Array): boolean {
  let labelAt = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x2e) {
      if (i - labelAt < 1 || i - labelAt > labelBytesMax) return false;
      bytes[labelAt] = i - labelAt;
      labelAt = i + 1;
    } else {
      if (code > 126 || code === 0x5c) return false;
      bytes[i + 1] = lowerCase[code]!;
    }
  }
  const last = text.length - labelAt;
  if (last < 1 || last > labelBytesMax) return false;
  bytes[labelAt] = last;
  return true;
}

/** Encodes one name after the other into the same memory: a result is good until the next. */
export class NameEncoder {
  readonly #bytes = new Uint8Array(nameBytesMax);
  /** By length. */
  readonly #views: Uint8Array[] = [];

  encode(text: string): Uint8Array {
    return this.#tryPlain(text) ?? encodeName(text);
  }

  tryEncode(text: string): Uint8Array | undefined {
    return this.#tryPlain(text) ?? tryEncodeName(text);
  }

  #tryPlain(text: string): Uint8Array | undefined {
    const size = text.length + 2;
    if (size > nameBytesMax || !writePlain(text, this.#bytes)) return undefined;
    this.#bytes[size - 1] = 0;
    return (this.#views[size] ??= this.#bytes.subarray(0, size));
  }
}

function encodeEscaped(text: string): Uint8Array {
  const labels = splitLabels(text);
  const size = labels.reduce((sum, label) => sum + label.length + 1, 1);
  if (size > nameBytesMax) {
    throw new NameError(`name ${text}: ${size} bytes, at most ${nameBytesMax} are allowed; shorten it`);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const label of labels) {
    bytes[at] = label.length;
    for (let i = 0; i < label.length; i++) bytes[at + 1 + i] = lowerCase[label[i]!]!;
    at += label.length + 1;
  }
  return bytes;
}

/** The same, or undefined for a name that cannot exist. */
export function tryEncodeName(text: string): Uint8Array | undefined {
  try {
    return encodeName(text);
  } catch (error) {
    if (error instanceof NameError) return undefined;
    throw error;
  }
}

/** Whether a name can exist; makes nothing of the common ones. */
export function isName(text: string): boolean {
  return (text.length + 2 <= nameBytesMax && writePlain(text, judged)) || tryEncodeName(text) !== undefined;
}

/** Written over by each name that is only judged. */
const judged = new Uint8Array(nameBytesMax);

function splitLabels(text: string): Uint8Array[] {
  const raw = Buffer.from(text);
  const labels: Uint8Array[] = [];
  let label: number[] = [];
  const end = () => {
    if (label.length === 0) throw new NameError(`name ${text}: it has an empty label`);
    if (label.length > labelBytesMax) {
      throw new NameError(`name ${text}: a label has ${label.length} bytes, at most ${labelBytesMax} are allowed`);
    }
    labels.push(Uint8Array.from(label));
    label = [];
  };
  for (let i = 0; i < raw.length; i++) {
    if (raw[i] === 0x2e) {
      end();
    } else if (raw[i] === 0x5c) {
      const digits = raw.toString('latin1', i + 1, i + 4);
      if (/^[0-9]{3}$/.test(digits) && Number(digits) < 256) {
        label.push(Number(digits));
        i += 3;
      } else if (i + 1 < raw.length) {
        label.push(raw[++i]!);
      }
    } else {
      label.push(raw[i]!);
    }
  }
  if (label.length > 0) end();
  return labels;
}

/** Dotted text without a trailing dot; `.` for the root. The name must not be compressed. */
export function decodeName(bytes: Uint8Array, start = 0): string {
  let at = start;
  let text = '';
  for (let size = bytes[at]!; size !== 0 && at < bytes.length; size = bytes[at]!) {
    if (text !== '') text += '.';
    for (let i = at + 1; i <= at + size; i++) text += charOf(bytes[i]!);
    at += size + 1;
  }
  return text === '' ? '.' : text;
}

function charOf(byte: number): string {
  if (byte === 0x2e || byte === 0x5c) return `\\${String.fromCharCode(byte)}`;
  if (byte > 0x20 && byte < 0x7f) return String.fromCharCode(byte);
  return `\\${String(byte).padStart(3, '0')}`;
}

/** 32-bit FNV-1a. The same bytes give the same hash in every thread and in every run. */
export function hashBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return hash | 0;
}

/** Whether `name` (first `length` bytes) is `zone` or lies below it. */
export function isWithin(name: Uint8Array, length: number, zone: Uint8Array): boolean {
  const offset = length - zone.length;
  if (offset < 0) return false;
  for (let i = zone.length - 1; i >= 0; i--) if (name[offset + i] !== zone[i]) return false;
  return isLabelStart(name, offset);
}

function isLabelStart(name: Uint8Array, offset: number): boolean {
  let at = 0;
  while (at < offset) at += name[at]! + 1;
  return at === offset;
}

/** `7.0.2.10.in-addr.arpa` or the nibbles under `ip6.arpa`, from the address' own bytes. */
export function reverseName(address: Uint8Array): string {
  if (address.length === 4) return `${[...address].reverse().join('.')}.in-addr.arpa`;
  const nibbles = [...address].flatMap((byte) => [byte >> 4, byte & 15]);
  return `${nibbles
    .reverse()
    .map((nibble) => nibble.toString(16))
    .join('.')}.ip6.arpa`;
}

/** The address whose reverse name this is; undefined for one that names a whole range or no address at all. */
export function addressOfReverse(name: Uint8Array, length: number): string | undefined {
  const labels = decodeName(name.subarray(0, length)).split('.');
  const [tree, family] = [labels.pop(), labels.pop()];
  if (tree !== 'arpa') return undefined;
  if (family === 'in-addr') return labels.length === 4 ? labels.reverse().join('.') : undefined;
  if (family !== 'ip6' || labels.length !== 32) return undefined;
  return labels
    .reverse()
    .join('')
    .replace(/.{4}(?!$)/g, '$&:');
}

/**
 * How an endpoint without a hostname is called: its address with dashes. IPv6 is written as RFC 5952 has it, with a 0 where
 * a dash would end the label, as other servers do: `fd00:240::1:13` is `fd00-240--1-13`, `fd00::` is `fd00--0`.
 */
export function dashedAddress(bytes: Uint8Array): string {
  const dashed = formatAddress(bytes).replaceAll(/[.:]/g, '-');
  return dashed.endsWith('-') ? `${dashed}0` : dashed;
}

/** The same with every group of an IPv6 address written out, as names were made before. */
export function dashedGroups(bytes: Uint8Array): string {
  if (bytes.length === 4) return dashedAddress(bytes);
  const groups: string[] = [];
  for (let i = 0; i < 16; i += 2) groups.push(((bytes[i]! << 8) | bytes[i + 1]!).toString(16));
  return groups.join('-');
}
