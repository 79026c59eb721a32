// Address ranges with a meaning of their own, from IANA's special-purpose registries and the clouds, and whether an
// address in one may stand for a foreign service. Pure; the table is to be read by people.

import { doRangesOverlap, type Ip, type IpRange, isInRange, parseRange } from './ip.ts';

/** `refused` leads nowhere, or to the reader itself. `embedded` is judged by the IPv4 address inside. */
type Verdict = 'refused' | 'ordinary' | 'embedded';

const table: readonly (readonly [range: string, what: string, verdict: Verdict, source: string])[] = [
  ['0.0.0.0/8', 'unspecified', 'refused', 'RFC 791'],
  ['10.0.0.0/8', 'private', 'ordinary', 'RFC 1918'],
  ['100.100.100.200/32', 'cloud metadata', 'refused', 'Alibaba Cloud'],
  ['100.64.0.0/10', 'shared address space', 'ordinary', 'RFC 6598'],
  ['127.0.0.0/8', 'loopback', 'refused', 'RFC 1122'],
  ['168.63.129.16/32', 'cloud metadata', 'refused', 'Azure'],
  ['169.254.0.0/16', 'link-local', 'refused', 'RFC 3927'],
  ['172.16.0.0/12', 'private', 'ordinary', 'RFC 1918'],
  ['192.0.0.0/24', 'protocol assignment', 'refused', 'RFC 6890'],
  ['192.0.2.0/24', 'documentation', 'ordinary', 'RFC 5737'],
  ['192.31.196.0/24', 'AS112', 'refused', 'RFC 7535'],
  ['192.52.193.0/24', 'multicast tunnel relay', 'refused', 'RFC 7450'],
  ['192.88.99.0/24', '6to4 relay', 'refused', 'RFC 7526'],
  ['192.168.0.0/16', 'private', 'ordinary', 'RFC 1918'],
  ['192.175.48.0/24', 'AS112', 'refused', 'RFC 7534'],
  ['198.18.0.0/15', 'benchmarking', 'ordinary', 'RFC 2544'],
  ['198.51.100.0/24', 'documentation', 'ordinary', 'RFC 5737'],
  ['203.0.113.0/24', 'documentation', 'ordinary', 'RFC 5737'],
  ['224.0.0.0/4', 'multicast', 'refused', 'RFC 5771'],
  ['255.255.255.255/32', 'broadcast', 'refused', 'RFC 919'],
  ['240.0.0.0/4', 'reserved', 'ordinary', 'RFC 1112; clouds give it to pods'],
  ['::/128', 'unspecified', 'refused', 'RFC 4291'],
  ['::1/128', 'loopback', 'refused', 'RFC 4291'],
  ['::ffff:0:0/96', 'IPv4-mapped', 'embedded', 'RFC 4291'],
  ['::/96', 'IPv4-compatible', 'refused', 'RFC 4291, deprecated'],
  ['64:ff9b::/96', 'NAT64', 'embedded', 'RFC 6052'],
  ['64:ff9b:1::/48', 'local NAT64', 'refused', 'RFC 8215'],
  ['100::/64', 'discard-only', 'refused', 'RFC 6666'],
  ['100:0:0:1::/64', 'dummy prefix', 'refused', 'RFC 9780'],
  ['2001::/23', 'protocol assignment', 'refused', 'RFC 2928; Teredo and ORCHID are in it'],
  ['2001:db8::/32', 'documentation', 'ordinary', 'RFC 3849'],
  ['2002::/16', '6to4', 'embedded', 'RFC 3056'],
  ['2620:4f:8000::/48', 'AS112', 'refused', 'RFC 7534'],
  ['3fff::/20', 'documentation', 'ordinary', 'RFC 9637'],
  ['5f00::/16', 'segment routing', 'refused', 'RFC 9602'],
  ['fd00:ec2::/32', 'cloud metadata', 'refused', 'AWS'],
  ['fd20:ce::254/128', 'cloud metadata', 'refused', 'Google Cloud'],
  ['fc00::/7', 'unique-local', 'ordinary', 'RFC 4193'],
  ['fe80::/10', 'link-local', 'refused', 'RFC 4291'],
  ['fec0::/10', 'site-local', 'refused', 'RFC 3879, deprecated'],
  ['ff00::/8', 'multicast', 'refused', 'RFC 4291'],
];

export interface SpecialRange {
  readonly text: string;
  readonly range: IpRange;
  readonly what: string;
  readonly verdict: Verdict;
}

export const specialRanges: readonly SpecialRange[] = table.map(([text, what, verdict]) => ({
  text,
  range: parseRange(text)!,
  what,
  verdict,
}));

/** Those that are not ordinary, by family; a range that lies in another comes before it. */
const judged = Map.groupBy(
  specialRanges
    .filter(({ verdict }) => verdict !== 'ordinary')
    .sort((a, b) => (a.range.size < b.range.size ? -1 : a.range.size > b.range.size ? 1 : 0)),
  ({ range }) => range.family,
);

/** The range by which the address is refused; undefined if it is ordinary. */
export function refusedRange(ip: Ip): SpecialRange | undefined {
  const found = judgedRange(ip);
  return found?.verdict === 'embedded' ? refusedRange(embeddedIn(ip, found)) : found;
}

/** The part of a range that no service can have: `loopback`; undefined if nothing. */
export function refusedWithin(range: IpRange): string | undefined {
  return specialRanges.find((special) => special.verdict === 'refused' && doRangesOverlap(special.range, range))?.what;
}

/** As a socket sees it: ::ffff:10.0.0.1 is 10.0.0.1. */
export function unmappedIp(ip: Ip): Ip {
  const found = judgedRange(ip);
  return found?.verdict === 'embedded' ? embeddedIn(ip, found) : ip;
}

function judgedRange(ip: Ip): SpecialRange | undefined {
  return judged.get(ip.family)?.find(({ range }) => isInRange(ip, range));
}

// 6to4 has the IPv4 address behind its first 16 bits, the others have it at the end.
function embeddedIn(ip: Ip, { text }: SpecialRange): Ip {
  const value = text === '2002::/16' ? ip.value >> 80n : ip.value;
  return { family: 'IPv4', value: value & 0xffff_ffffn };
}
