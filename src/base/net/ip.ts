// IP addresses and ranges: between text and bytes, without the garbage of a general parser, and as numbers that are in
// ranges or not. IPv6 is written as RFC 5952 wants it. Pure.

export type IpFamily = 'IPv4' | 'IPv6';

export interface Ip {
  readonly family: IpFamily;
  readonly value: bigint;
}

export interface IpRange {
  readonly family: IpFamily;
  readonly first: bigint;
  readonly size: bigint;
}

export function parseIp(text: string): Ip | undefined {
  if (!text.includes(':')) {
    const number = parseIpv4Number(text);
    return number === undefined ? undefined : { family: 'IPv4', value: BigInt(number) };
  }
  const bytes = parseIpv6(text);
  if (bytes === undefined) return undefined;
  const view = new DataView(bytes.buffer);
  return { family: 'IPv6', value: (view.getBigUint64(0) << 64n) | view.getBigUint64(8) };
}

export function formatIp({ family, value }: Ip): string {
  const view = new DataView(new ArrayBuffer(family === 'IPv4' ? 4 : 16));
  if (family === 'IPv4') view.setUint32(0, Number(value));
  else {
    view.setBigUint64(0, value >> 64n);
    view.setBigUint64(8, value & 0xffff_ffff_ffff_ffffn);
  }
  return formatAddress(new Uint8Array(view.buffer));
}

/** `10.0.0.0/8`, `fd00::/48`. Bits below the prefix are ignored, as routers do. */
export function parseRange(text: string): IpRange | undefined {
  const slash = text.indexOf('/');
  const ip = parseIp(slash < 0 ? text : text.slice(0, slash));
  if (ip === undefined) return undefined;
  const bits = bitsOf(ip.family);
  const prefix = slash < 0 ? String(bits) : text.slice(slash + 1);
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) return undefined;
  const size = 1n << BigInt(bits - Number(prefix));
  return { family: ip.family, first: ip.value - (ip.value % size), size };
}

export function formatRange(range: IpRange): string {
  const first = formatIp({ family: range.family, value: range.first });
  return `${first}/${bitsOf(range.family) - (range.size.toString(2).length - 1)}`;
}

export function isInRange(ip: Ip, range: IpRange): boolean {
  return ip.family === range.family && ip.value >= range.first && ip.value < range.first + range.size;
}

export function doRangesOverlap(a: IpRange, b: IpRange): boolean {
  return a.family === b.family && a.first < b.first + b.size && b.first < a.first + a.size;
}

const bitsOf = (family: IpFamily) => (family === 'IPv4' ? 32 : 128);

/** 4 or 16 bytes, or undefined if the text is no address. An IPv4-mapped IPv6 address stays IPv6. */
export function parseAddress(text: string): Uint8Array | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text);
}

function parseIpv4(text: string): Uint8Array | undefined {
  const address = parseIpv4Number(text);
  if (address === undefined) return undefined;
  return Uint8Array.of(address >>> 24, address >>> 16, address >>> 8, address);
}

/** The four bytes as one number: what needs no array of its own. */
export function parseIpv4Number(text: string): number | undefined {
  let address = 0;
  let part = 0;
  let digits = 0;
  let value = 0;
  for (let i = 0; i <= text.length; i++) {
    const code = i < text.length ? text.charCodeAt(i) : 0x2e;
    if (code === 0x2e) {
      if (digits === 0 || value > 255 || part > 3) return undefined;
      address = address * 256 + value;
      part += 1;
      digits = 0;
      value = 0;
    } else {
      // A leading zero is octal to some readers and decimal to others: it is refused.
      if (code < 0x30 || code > 0x39 || (digits > 0 && value === 0) || digits === 3) return undefined;
      value = 10 * value + code - 0x30;
      digits += 1;
    }
  }
  return part === 4 ? address : undefined;
}

function parseIpv6(text: string): Uint8Array | undefined {
  let groups = text;
  const tail = text.lastIndexOf(':');
  if (text.includes('.', tail)) {
    const ipv4 = parseIpv4(text.slice(tail + 1));
    if (!ipv4) return undefined;
    const [a, b, c, d] = ipv4 as unknown as [number, number, number, number];
    groups = `${text.slice(0, tail + 1)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  }
  const halves = groups.split('::');
  if (halves.length > 2) return undefined;
  const head = halves[0] === '' ? [] : halves[0]!.split(':');
  const rest = halves.length === 1 || halves[1] === '' ? [] : halves[1]!.split(':');
  const missing = 8 - head.length - rest.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined;
  const all = [...head, ...Array.from({ length: missing }, () => '0'), ...rest];
  const bytes = new Uint8Array(16);
  for (let i = 0; i < 8; i++) {
    if (!/^[0-9a-fA-F]{1,4}$/.test(all[i]!)) return undefined;
    const group = Number.parseInt(all[i]!, 16);
    bytes[2 * i] = group >> 8;
    bytes[2 * i + 1] = group & 255;
  }
  return bytes;
}

/** The usual text of an address; IPv6 as RFC 5952 wants it. */
export function formatAddress(bytes: Uint8Array, start = 0, length = bytes.length - start): string {
  if (length === 4) return `${bytes[start]}.${bytes[start + 1]}.${bytes[start + 2]}.${bytes[start + 3]}`;
  const groups: number[] = [];
  for (let i = 0; i < 8; i++) groups.push((bytes[start + 2 * i]! << 8) | bytes[start + 2 * i + 1]!);
  const run = longestZeroRun(groups);
  const text = (part: number[]) => part.map((group) => group.toString(16)).join(':');
  if (run.length < 2) return text(groups);
  return `${text(groups.slice(0, run.start))}::${text(groups.slice(run.start + run.length))}`;
}

function longestZeroRun(groups: number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < groups.length; start++) {
    let end = start;
    while (end < groups.length && groups[end] === 0) end += 1;
    if (end - start > best.length) best = { start, length: end - start };
    if (end > start) start = end - 1;
  }
  return best;
}
