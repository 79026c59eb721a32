// Which addresses may stand behind a service, and which are refused: those that lead nowhere, back to the reader itself,
// or into our own virtual ranges. Pure.

import { doRangesOverlap, type Ip, type IpRange, isInRange, parseIp, parseRange } from '../../base/ip.ts';

const refusedRanges: readonly { readonly what: string; readonly range: IpRange }[] = [
  ['unspecified', '0.0.0.0/8'],
  ['loopback', '127.0.0.0/8'],
  ['link-local', '169.254.0.0/16'],
  ['multicast', '224.0.0.0/4'],
  ['broadcast', '255.255.255.255/32'],
  ['unspecified', '::/128'],
  ['loopback', '::1/128'],
  ['link-local', 'fe80::/10'],
  ['multicast', 'ff00::/8'],
].map(([what, text]) => ({ what: what!, range: parseRange(text!)! }));

export interface AddressRules {
  /** Our own virtual addresses: an endpoint there would lead in a circle. */
  readonly virtualRanges: readonly IpRange[];
  /** If not empty, endpoints must lie in one of them. */
  readonly allowedRanges: readonly IpRange[];
}

/** What the range holds that can be nobody's address: `loopback`; undefined if nothing. */
export function specialRange(range: IpRange): string | undefined {
  return refusedRanges.find((special) => doRangesOverlap(special.range, range))?.what;
}

/** Why the address is refused; undefined if it is fine. */
export function refusal(address: string, rules: AddressRules): string | undefined {
  const ip = parseIp(address);
  if (ip === undefined) return 'not an ip address';
  const special = refusedRanges.find(({ range }) => isInRange(unmapped(ip), range));
  if (special !== undefined && !isNamedOutright(ip, special.range, rules))
    return `${special.what} addresses lead nowhere from another cluster`;
  if (rules.virtualRanges.some((range) => isInRange(unmapped(ip), range))) return 'it is a virtual address of our own';
  if (rules.allowedRanges.length > 0 && !rules.allowedRanges.some((range) => isInRange(ip, range))) {
    return 'it lies outside the address ranges that the cluster joined with';
  }
  return undefined;
}

// Clusters that share one machine reach each other by loopback: the set's admin may name such a range, part by part; one
// that merely covers it, such as 0.0.0.0/0, names nothing.
function isNamedOutright(ip: Ip, special: IpRange, { allowedRanges }: AddressRules): boolean {
  return allowedRanges.some((range) => range.size < special.size && isInRange(ip, range) && isInRange(ip, special));
}

// ::ffff:127.0.0.1 is 127.0.0.1 to a socket, so it is to us.
function unmapped(ip: Ip): Ip {
  const isMapped = ip.family === 'IPv6' && ip.value >> 32n === 0xffffn;
  return isMapped ? { family: 'IPv4', value: ip.value & 0xffff_ffffn } : ip;
}
