// The one address rule for everything a member says: endpoints, cluster IPs, load balancers. Refused are addresses that lead
// nowhere or back to the reader itself, our own virtual ones, and those outside the ranges the cluster joined with. Pure.

import { type Ip, type IpRange, isInRange, parseIp } from '../../base/net/ip.ts';
import { refusedRange, unmappedIp } from '../../base/net/special-ranges.ts';

export interface AddressRules {
  /** Our own virtual addresses: an endpoint there would lead in a circle. */
  readonly virtualRanges: readonly IpRange[];
  /** If not empty, addresses must lie in one of them. */
  readonly allowedRanges: readonly IpRange[];
  /** Ranges of the reader's own pods and services: there an address of another cluster leads to the reader. No admin allows it. */
  readonly readerRanges?: readonly IpRange[];
}

/** Why the address is refused; undefined if it is fine. */
export function refusal(address: string, rules: AddressRules): string | undefined {
  const ip = parseIp(address);
  if (ip === undefined) return 'not an ip address';
  const special = refusedRange(ip);
  if (special !== undefined && !isNamedOutright(ip, special.range, rules))
    return `${special.what} addresses lead nowhere from another cluster`;
  if (rules.virtualRanges.some((range) => isInRange(unmappedIp(ip), range)))
    return 'it is a virtual address of our own';
  if (rules.readerRanges?.some((range) => isInRange(unmappedIp(ip), range)))
    return 'it is in a range of the cluster that reads it';
  if (rules.allowedRanges.length > 0 && !rules.allowedRanges.some((range) => isInRange(ip, range))) {
    return 'it is outside the address ranges of the cluster';
  }
  return undefined;
}

// Clusters that share one machine reach each other by loopback: the set's admin may name such a range, part by part; one
// that merely covers it, such as 0.0.0.0/0, names nothing.
function isNamedOutright(ip: Ip, special: IpRange, { allowedRanges }: AddressRules): boolean {
  const isPart = ({ size }: IpRange) => size < special.size || size === 1n;
  return allowedRanges.some((range) => isPart(range) && isInRange(ip, range) && isInRange(ip, special));
}
