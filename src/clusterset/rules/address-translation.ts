// How other clusters reach a cluster: the ranges that the set's admin allows it, and where those lie when seen from outside,
// address for address, as a 1:1 NAT at its edge has it. Pure.

import { formatIp, type IpRange, isInRange, parseIp, parseRange } from '../../base/net/ip.ts';
import type { ClusterSpec, TranslationSpec } from '../kinds/cluster.ts';
import type { AddressRules } from './endpoint-address.ts';

export interface Translation {
  readonly from: IpRange;
  readonly to: IpRange;
}

/** The rules by which a cluster publishes addresses. */
export interface OwnAddressRules extends AddressRules {
  readonly translations?: readonly Translation[];
}

export interface ReadTranslations {
  readonly translations: readonly Translation[];
  /** Addresses left out, and why, for people. */
  readonly notes: readonly string[];
}

export function readTranslations(specs: readonly TranslationSpec[] = []): ReadTranslations {
  const translations: Translation[] = [];
  const notes: string[] = [];
  for (const spec of specs) {
    const [from, to] = [parseRange(spec.from), parseRange(spec.to)];
    if (from?.family !== undefined && from.family === to?.family) translations.push({ from, to });
    else notes.push(`translation of ${spec.from} to ${spec.to} left out: they are not ranges of one address family`);
  }
  // Where ranges lie within each other the smallest says most.
  translations.sort((a, b) => (a.from.size < b.from.size ? -1 : a.from.size > b.from.size ? 1 : 0));
  return { translations, notes };
}

/** As others reach it: the address itself if no range has it, undefined if the range it moves to is too small for it. */
export function translate(address: string, translations: readonly Translation[] = []): string | undefined {
  if (translations.length === 0) return address;
  const ip = parseIp(address);
  const found = ip && translations.find(({ from }) => isInRange(ip, from));
  if (ip === undefined || found === undefined) return address;
  const offset = ip.value - found.from.first;
  return offset < found.to.size ? formatIp({ family: ip.family, value: found.to.first + offset }) : undefined;
}

/** From how others see addresses to what they are: the cluster itself has no use for a way around. */
export function inverse(translations: readonly Translation[]): Translation[] {
  return translations.map(({ from, to }) => ({ from: to, to: from }));
}

/** The set admin's settings for a cluster's addresses. */
export type ClusterAddresses = Pick<ClusterSpec, 'allowedRanges' | 'translations'>;

export interface OwnAddresses {
  readonly rules: OwnAddressRules;
  /** From what it published back to its own addresses. */
  readonly inverse: readonly Translation[];
  /** Problems of the admin's settings. */
  readonly notes: readonly string[];
}

export function readAddressRules(virtualRanges: readonly IpRange[], allowed: readonly string[] = []): AddressRules {
  const allowedRanges = allowed.map((text) => parseRange(text)).filter((range) => range !== undefined);
  return { virtualRanges, allowedRanges };
}

export function readOwnAddresses(rules: AddressRules, addresses: ClusterAddresses | undefined): OwnAddresses {
  const { translations, notes } = readTranslations(addresses?.translations);
  return { rules: { ...rules, translations }, inverse: inverse(translations), notes };
}
