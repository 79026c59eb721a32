// How a cluster publishes its own addresses: where the set's admin says that they are, and how others reach them. Pure.

import { type IpRange, parseRange } from '../../base/ip.ts';
import type { ClusterSpec } from '../kinds/cluster.ts';
import { inverse, type PublishingRules, readTranslations, type Translation } from './address-translation.ts';
import type { AddressRules } from './endpoint-address.ts';

/** What the set's admin says of a cluster's addresses. */
export type ClusterAddresses = Pick<ClusterSpec, 'allowedRanges' | 'translations'>;

export interface Publishing {
  readonly rules: PublishingRules;
  /** From what it published back to its own addresses. */
  readonly inverse: readonly Translation[];
  /** What is wrong with what the admin said of it. */
  readonly notes: readonly string[];
}

export function readAddressRules(virtualRanges: readonly IpRange[], allowed: readonly string[] = []): AddressRules {
  const allowedRanges = allowed.map((text) => parseRange(text)).filter((range) => range !== undefined);
  return { virtualRanges, allowedRanges };
}

export function readPublishing(rules: AddressRules, addresses: ClusterAddresses | undefined): Publishing {
  const { translations, notes } = readTranslations(addresses?.translations);
  return { rules: { ...rules, translations }, inverse: inverse(translations), notes };
}
