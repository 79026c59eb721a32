// Checks of addresses: the ranges of members and of the clusterset do not overlap, enough addresses are left, and no import
// names an address of another. Pure.

import { addressConflict } from '../../addresses/address-conflict.ts';
import { canonicalAddress, ownerKey } from '../../addresses/claim.ts';
import { type IpRange, isInRange, parseIp, parseRange } from '../../base/net/ip.ts';
import { areServicesPublished, type KnownMember, virtualRanges } from '../../clusterset/explain/broker-state.ts';
import { networkOf } from '../../clusterset/rules/networks/reach.ts';
import { findOverlaps, type NamedRange } from '../../clusterset/rules/range-overlap.ts';
import { keyOf } from '../../kube/objects/object.ts';
import type { Checks } from '../diagnosis.ts';
import { need, needSet } from '../facts.ts';

const usedShareMax = 0.8;

export const addressChecks: Checks = {
  PTL0401: (facts) => {
    const set = needSet(facts)?.state;
    if (set === undefined) return [];
    const ranges = set.members.map(rangesSeen);
    const networks = set.members.map(({ cluster }) => networkOf(cluster));
    const areShown = areServicesPublished(set.set);
    return ranges.flatMap((own, index) => {
      const met = ranges.filter((_, other) => other > index && networks[other] === networks[index]);
      const others = [...virtualRanges(set.set), ...met.flat()];
      const subject = `cluster ${set.members[index]?.id}`;
      const problems = findOverlaps({ own, others, areServicesPublished: areShown });
      return problems.map((message) => ({ subject, message }));
    });
  },
  PTL0402: (facts) => {
    const set = needSet(facts)?.state.set;
    if (set === undefined) return [];
    const held = need(facts.claims).flatMap(({ spec }) => parseIp(spec.address) ?? []);
    return virtualRanges(set).flatMap(({ cidr, whose }) => {
      const range = parseRange(cidr);
      if (range === undefined) return [];
      const used = held.filter((ip) => isInRange(ip, range)).length;
      if (used < usedShareMax * Number(range.size)) return [];
      return [{ subject: `range ${cidr}`, message: `${used} of ${range.size} addresses are taken (${whose})` }];
    });
  },
  PTL0403: (facts) => {
    const imports = need(facts.imports).filter(({ spec }) => Array.isArray(spec?.ips));
    const claims = new Map(need(facts.claims).map((claim) => [claim.metadata.name, ownerKey(claim.spec.owner)]));
    const set = 'value' in facts.broker ? needSet(facts)?.state.set : undefined;
    const ranges = set === undefined ? [] : virtualRanges(set).flatMap(({ cidr }) => parseRange(cidr) ?? []);
    const users = new Map<string, string[]>();
    for (const object of imports)
      for (const address of new Set(object.spec.ips!.map((ip) => canonicalAddress(String(ip)))))
        if (!users.get(address)?.push(keyOf(object))) users.set(address, [keyOf(object)]);
    return imports.flatMap((object) => {
      const conflict = addressConflict(object.metadata, object.spec.ips, {
        claimedBy: (name) => claims.get(name),
        usersOf: (address) => users.get(address) ?? [],
        isAllocated: (address) => isInOne(address, ranges),
      });
      return conflict === undefined ? [] : [{ subject: `ServiceImport ${keyOf(object)}`, message: conflict.message }];
    });
  },
  PTL0404: (facts) => {
    const set = needSet(facts)?.state;
    const open = set?.members.filter(({ cluster }) => (cluster.spec.allowedRanges ?? []).length === 0) ?? [];
    if (set === undefined || open.length === 0) return [];
    const shown = open.slice(0, membersShown).map(reportedRanges);
    const more = open.length - shown.length;
    const message = `no allowedRanges: ${shown.join('; ')}${more === 0 ? '' : `; and ${more} more`}`;
    return [{ subject: `${open.length} of ${set.members.length} clusters`, message }];
  },
};

const membersShown = 5;

/** As the member itself said when it joined; the admin has not confirmed it. */
function reportedRanges({ id, record }: KnownMember): string {
  const ranges = [...(record?.podRanges ?? []), ...(record?.serviceRanges ?? [])];
  return ranges.length === 0 ? `${id} reported none` : `${id} reported ${ranges.join(', ')}`;
}

function isInOne(address: string, ranges: readonly IpRange[]): boolean {
  const ip = parseIp(address);
  return ip !== undefined && ranges.some((range) => isInRange(ip, range));
}

/** As other clusters see them: the declared ranges, or the translated ones. */
function rangesSeen({ id, cluster, record }: KnownMember): NamedRange[] {
  const named = (cidrs: readonly string[], what: string, kind: NamedRange['kind']) =>
    cidrs.map((cidr) => ({ cidr, whose: `${what} of cluster ${id}`, kind }));
  if (record === undefined || (cluster.spec.translations ?? []).length > 0)
    return named(cluster.spec.allowedRanges ?? [], 'allowed addresses', 'pods');
  return [...named(record.podRanges, 'pods', 'pods'), ...named(record.serviceRanges, 'services', 'services')];
}
