// The IP families that Pods of a cluster have, by the Pod ranges that it joined with. An import has addresses and endpoints of
// those families alone: a Pod with an IPv4 address could not reach others. Pure.

import { type IpFamily, parseRange } from '../../../base/net/ip.ts';

export const allFamilies: readonly IpFamily[] = ['IPv4', 'IPv6'];

/** Undefined while no range is known: all families are used. */
export function familiesOf(podRanges: readonly string[]): readonly IpFamily[] | undefined {
  const found = new Set(podRanges.flatMap((text) => parseRange(text)?.family ?? []));
  return found.size === 0 ? undefined : allFamilies.filter((family) => found.has(family));
}

export interface UsableFamilies {
  /** Those of the service, in its order, that are used here. */
  readonly used: readonly IpFamily[];
  /** Those that no Pod of this cluster has. */
  readonly absent: readonly IpFamily[];
}

export function usableFamilies(wanted: readonly IpFamily[], families: readonly IpFamily[] | undefined): UsableFamilies {
  const isHere = (family: IpFamily) => families?.includes(family) ?? true;
  return { used: wanted.filter(isHere), absent: wanted.filter((family) => !isHere(family)) };
}
