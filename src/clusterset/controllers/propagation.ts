// Observes the time from an export to its import here: once for each record, when its endpoints have been written.

import { propagationBuckets, propagationSeconds } from '../../base/propagation-time.ts';
import type { AgentContext } from '../copies/context.ts';
import type { CountedRecord } from '../copies/counted-records.ts';
import type { ServiceImport } from '../kinds/service-import.ts';
import type { ServiceKey } from '../rules/names.ts';
import { ImportedRecords, importableSinceMs } from '../rules/propagation.ts';

export interface Propagation {
  /** Since when this cluster could have imported the record. */
  sinceMs(service: ServiceKey, record: CountedRecord): number | undefined;
  /** `present` is the import before it was written. */
  imported(service: ServiceKey, records: readonly CountedRecord[], present: ServiceImport | undefined): void;
}

export function observePropagation(context: AgentContext): Propagation {
  const { metrics, world, members, membership, copies } = context;
  const known = new ImportedRecords();
  const histogram = metrics?.histogram({
    name: 'clusterset_export_to_import_seconds',
    help: 'Time from the creation of an export to its import in this cluster, in steps of a second.',
    buckets: propagationBuckets,
  });

  const sinceMs = ({ namespace }: ServiceKey, { record }: CountedRecord) =>
    importableSinceMs({
      exportedAt: record.spec.exportedAt,
      memberSince: members.get(membership.clusterId)?.cluster.metadata.creationTimestamp,
      namespaceSince: copies.namespaces.get(namespace)?.metadata.creationTimestamp,
    });

  function imported(service: ServiceKey, records: readonly CountedRecord[], present: ServiceImport | undefined): void {
    const clusters = new Set((present?.status?.clusters ?? []).map(({ cluster }) => cluster));
    for (const record of records) {
      const { uid } = record.record.metadata;
      if (uid === undefined || !known.isNew(service, record.cluster, uid)) continue;
      const since = clusters.has(record.cluster) ? undefined : sinceMs(service, record);
      if (since !== undefined) histogram?.observe(propagationSeconds(since, world.clock.wallMs()));
    }
  }

  return { sinceMs, imported };
}
