// Checks of address ranges: those of members and of the clusterset do not overlap, and enough addresses are left. Pure.

import { isInRange, parseIp, parseRange } from '../../base/net/ip.ts';
import { areServicesPublished, type KnownMember, virtualRanges } from '../../clusterset/explain/broker-state.ts';
import { findOverlaps, type NamedRange } from '../../clusterset/rules/range-overlap.ts';
import type { Checks } from '../diagnosis.ts';
import { need, needSet } from '../facts.ts';

const usedShareMax = 0.8;

export const addressChecks: Checks = {
  PTL0401: (facts) => {
    const set = needSet(facts)?.state;
    if (set === undefined) return [];
    const ranges = set.members.map(rangesSeen);
    const areShown = areServicesPublished(set.set);
    return ranges.flatMap((own, index) => {
      const others = [...virtualRanges(set.set), ...ranges.slice(index + 1).flat()];
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
};

/** As other clusters see them: the declared ranges, or the translated ones. */
function rangesSeen({ id, cluster, record }: KnownMember): NamedRange[] {
  const named = (cidrs: readonly string[], what: string, kind: NamedRange['kind']) =>
    cidrs.map((cidr) => ({ cidr, whose: `${what} of cluster ${id}`, kind }));
  if (record === undefined || (cluster.spec.translations ?? []).length > 0)
    return named(cluster.spec.allowedRanges ?? [], 'allowed addresses', 'pods');
  return [...named(record.podRanges, 'pods', 'pods'), ...named(record.serviceRanges, 'services', 'services')];
}
