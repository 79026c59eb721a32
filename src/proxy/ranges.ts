// The ranges of clusterset addresses: those that the home has of the clusterset, and whether a mode can serve them. Pure.

import { doRangesOverlap, formatRange, type IpRange, parseRange } from '../base/net/ip.ts';
import { clusterSetDefaults } from '../clusterset/kinds/cluster-set.ts';
import { readAddressPlan } from '../clusterset/rules/address-plan.ts';
import type { ConfigMap } from '../kube/objects/config-map.ts';

export type ProxyMode = 'nftables' | 'userspace';

const loopback = parseRange('127.0.0.0/8')!;

/** As the agent copied them from the ClusterSet; the default ones where it has not. */
export function rangesAtHome(written: ConfigMap | undefined): IpRange[] {
  const said = readAddressPlan(written ?? {})?.ranges.clusterSet ?? [];
  const texts = said.length > 0 ? said : clusterSetDefaults.addressRanges.clusterSet;
  return texts.map(parseRange).filter((range) => range !== undefined);
}

/** Why this mode cannot serve them; undefined if it can. */
export function modeProblem(ranges: readonly IpRange[], mode: ProxyMode): string | undefined {
  for (const range of ranges) {
    const isLoopback =
      range.family === 'IPv4' && range.first >= loopback.first && range.first < loopback.first + loopback.size;
    if (mode === 'userspace' && !isLoopback)
      return `--mode userspace: clusterset addresses must be inside 127.0.0.0/8, not in ${formatRange(range)}; set addressRanges.clusterSet in the ClusterSet, such as to 127.100.0.0/16`;
    if (mode === 'nftables' && isLoopback)
      return `${formatRange(range)}: the kernel forwards nothing to loopback addresses; use --mode userspace`;
  }
  return undefined;
}

/** Why clusterset addresses and those of the cluster's own Services cannot be carried by one table; undefined if they can. */
export function overlapProblem(clusterSet: readonly IpRange[], services: readonly IpRange[]): string | undefined {
  for (const range of clusterSet)
    for (const other of services)
      if (doRangesOverlap(range, other))
        return `${formatRange(range)} of the clusterset overlaps ${formatRange(other)} of this cluster's Services: choose another addressRanges.clusterSet in the ClusterSet`;
  return undefined;
}

export function areSameRanges(a: readonly IpRange[], b: readonly IpRange[]): boolean {
  return a.map(formatRange).join() === b.map(formatRange).join();
}
