// Tests client addresses against ranges. Results are remembered by address text.

import { type IpRange, isInRange, parseIp, parseRange } from '../../base/net/ip.ts';

const rememberedMax = 10_000;

/** A test of addresses against ranges that is cheap when the same ones come again. */
export function createAddressFilter(ranges: readonly string[]): (address: string) => boolean {
  const parsed = ranges.map((text): IpRange => {
    const range = parseRange(text);
    if (!range) throw new Error(`address range ${JSON.stringify(text)}: want an address or address/prefix`);
    return range;
  });
  const remembered = new Map<string, boolean>();
  return (address) => {
    const known = remembered.get(address);
    if (known !== undefined) return known;
    const isAllowed = isInAny(address, parsed);
    if (remembered.size >= rememberedMax) remembered.clear();
    remembered.set(address, isAllowed);
    return isAllowed;
  };
}

function isInAny(text: string, ranges: readonly IpRange[]): boolean {
  // A dual-stack socket shows IPv4 clients as ::ffff:10.0.0.1, a link-local one ends in %eth0.
  const plain = text.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  const ip = parseIp(plain);
  return ip !== undefined && ranges.some((range) => isInRange(ip, range));
}
