// IP addresses and ranges as numbers: parse, format (RFC 5952), contain, overlap. Pure.

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
  const value = text.includes(':') ? parseV6(text) : parseV4(text);
  return value === undefined ? undefined : { family: text.includes(':') ? 'IPv6' : 'IPv4', value };
}

export function formatIp(ip: Ip): string {
  return ip.family === 'IPv4' ? formatV4(ip.value) : formatV6(ip.value);
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

export function isInRange(ip: Ip, range: IpRange): boolean {
  return ip.family === range.family && ip.value >= range.first && ip.value < range.first + range.size;
}

export function doRangesOverlap(a: IpRange, b: IpRange): boolean {
  return a.family === b.family && a.first < b.first + b.size && b.first < a.first + a.size;
}

const bitsOf = (family: IpFamily) => (family === 'IPv4' ? 32 : 128);

function parseV4(text: string): bigint | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  let value = 0n;
  for (const part of parts) {
    // A leading zero is octal to some readers and decimal to others: nobody gets to choose.
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    value = value * 256n + BigInt(part);
  }
  return value;
}

function parseV6(text: string): bigint | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const head = parseGroups(halves[0] ?? '', halves.length === 1);
  const tail = halves.length === 2 ? parseGroups(halves[1] ?? '', true) : [];
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined;
  return [...head, ...Array<number>(missing).fill(0), ...tail].reduce((sum, group) => sum * 65536n + BigInt(group), 0n);
}

function parseGroups(text: string, mayEndInV4: boolean): number[] | undefined {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [index, part] of parts.entries()) {
    const embedded = mayEndInV4 && index === parts.length - 1 && part.includes('.') ? parseV4(part) : undefined;
    if (embedded !== undefined) groups.push(Number(embedded >> 16n), Number(embedded & 0xffffn));
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
}

function formatV4(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.');
}

function formatV6(value: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) => Number((value >> BigInt(112 - 16 * index)) & 0xffffn));
  const run = longestZeroRun(groups);
  const hex = (part: number[]) => part.map((group) => group.toString(16)).join(':');
  if (run.length < 2) return hex(groups);
  return `${hex(groups.slice(0, run.start))}::${hex(groups.slice(run.start + run.length))}`;
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < groups.length; start += 1) {
    let length = 0;
    while (groups[start + length] === 0) length += 1;
    if (length > best.length) best = { start, length };
  }
  return best;
}

export type IpFamily = 'IPv4' | 'IPv6';
