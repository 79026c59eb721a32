// Clusters that a node proxy has left for a service, because their endpoints are called ready and do not answer from its node, as its
// Lease carries them; and what the proxies of a cluster say together. Pure.

import { compareText } from '../../../base/compare-text.ts';
import { isObject } from '../../../base/json.ts';
import type { Lease } from '../lease.ts';
import { partAnnotations } from '../part-lease.ts';

/** In the Lease of a node proxy: `{"shop/web":{"east":[2,2,1700000000]}}`, endpoints left, ready ones, and since when in seconds. */
export const silentAnnotation = 'portolan.dev/silent-clusters';

export interface SilentCluster {
  readonly left: number;
  readonly of: number;
  /** Since 1970. */
  readonly sinceMs: number;
}

/** By service and cluster. */
export type SilentReport = ReadonlyMap<string, ReadonlyMap<string, SilentCluster>>;

const servicesMax = 100;
const clustersMax = 50;

export function formatSilent(report: SilentReport): string {
  const some = [...report].sort(([one], [other]) => compareText(one, other)).slice(0, servicesMax);
  return JSON.stringify(
    Object.fromEntries(
      some.map(([service, clusters]) => [
        service,
        Object.fromEntries(
          [...clusters]
            .slice(0, clustersMax)
            .map(([cluster, { left, of, sinceMs }]) => [cluster, [left, of, Math.round(sinceMs / 1000)]]),
        ),
      ]),
    ),
  );
}

/** What makes no sense is left out. */
export function readSilent(text: string | undefined): Map<string, Map<string, SilentCluster>> {
  const report = new Map<string, Map<string, SilentCluster>>();
  for (const [service, clusters] of entriesOf(parsed(text)).slice(0, servicesMax)) {
    const found = entriesOf(clusters)
      .slice(0, clustersMax)
      .flatMap(([cluster, counts]) => entryOf(cluster, counts));
    if (found.length > 0) report.set(service, new Map(found));
  }
  return report;
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function entriesOf(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}

function entryOf(cluster: string, counts: unknown): [string, SilentCluster][] {
  if (!Array.isArray(counts) || counts.length !== 3 || !counts.every((each) => Number.isSafeInteger(each))) return [];
  const [left, of, since] = counts as [number, number, number];
  // A year that no date can be made of is no time.
  if (left < 1 || of < left || since < 0 || since > 8.64e12) return [];
  return [[cluster, { left, of, sinceMs: since * 1000 }]];
}

/** A cluster that was left as a whole, by some nodes or by all that report. */
export interface SilentFrom {
  readonly nodes: readonly string[];
  readonly isAll: boolean;
  /** Since when it does not answer from the last of them. */
  readonly sinceMs: number;
}

/** By service and cluster, of the Leases of living proxies. Single endpoints are a node's own affair. */
export function silentFrom(proxies: readonly Lease[]): Map<string, Map<string, SilentFrom>> {
  const found = new Map<string, Map<string, { nodes: string[]; sinceMs: number }>>();
  for (const { metadata } of proxies) {
    const node = metadata.annotations?.[partAnnotations.node] || metadata.name;
    for (const [service, clusters] of readSilent(metadata.annotations?.[silentAnnotation]))
      for (const [cluster, { left, of, sinceMs }] of clusters) {
        if (left < of) continue;
        const known = found.get(service) ?? new Map<string, { nodes: string[]; sinceMs: number }>();
        found.set(service, known);
        const before = known.get(cluster) ?? { nodes: [], sinceMs: 0 };
        known.set(cluster, { nodes: [...before.nodes, node].sort(), sinceMs: Math.max(before.sinceMs, sinceMs) });
      }
  }
  return new Map(
    [...found]
      .sort(([one], [other]) => compareText(one, other))
      .map(([service, clusters]) => [
        service,
        new Map(
          [...clusters]
            .sort(([one], [other]) => compareText(one, other))
            .map(([cluster, each]) => [cluster, { ...each, isAll: each.nodes.length === proxies.length }]),
        ),
      ]),
  );
}
