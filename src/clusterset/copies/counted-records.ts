// Which records of one service count for this cluster: every member's shard, unless its lease has run out and the policy
// withdraws it. Reads the shared copies; decides by the pure rules of the model.

import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import { isExportedTo, type ServiceShard } from '../kinds/service-shard.ts';
import { publishedBy, shardOf } from '../members/follower.ts';
import { type MemberStatus, memberStatus } from '../rules/leases/staleness.ts';
import { mayExport } from '../rules/may-export.ts';
import type { Shard } from '../rules/merge/shard.ts';
import type { ServiceKey } from '../rules/names.ts';
import { readShard, recordProblem } from '../rules/shard-record.ts';
import type { AgentContext } from './context.ts';

export interface CountedRecord {
  readonly cluster: string;
  readonly record: ServiceShard;
  readonly shard: Shard;
  readonly status: MemberStatus;
  /** The slices this cluster has published of the service. */
  readonly published: () => readonly EndpointSlice[];
}

export interface CountedOptions {
  /** Only what the named cluster may import from. */
  readonly onlyFor?: string;
  /** Also what clusters that are not upgraded yet have published in the older form. */
  readonly withLegacy: boolean;
}

/** All exporters whose shards count. */
export function countedRecords(context: AgentContext, service: ServiceKey, options: CountedOptions): CountedRecord[] {
  const records: CountedRecord[] = [];
  for (const member of context.members.exportersOf(service)) {
    const record = shardOf(member, service);
    if (record === undefined || !isFor(record, member.id, options.onlyFor)) continue;
    if (recordProblem(record) !== undefined || !mayExport(member.cluster.spec, service)) continue;
    const isDraining = member.cluster.spec.draining === true || record.spec.draining === true;
    const policy = record.spec.onStale ?? context.policy().staleness;
    const now = { ...memberStatus(context.verdict(member.id), policy), isDraining };
    const published = () => publishedBy(member, service);
    if (now.isCounted)
      records.push({ cluster: member.id, record, shard: readShard(record, member.id), status: now, published });
  }
  if (!options.withLegacy) return records;
  // A cluster that is being upgraded has both for a moment: then the older form counts until the new one is whole.
  const older = legacyRecords(context, service);
  return [...records.filter((record) => !older.some(({ cluster }) => cluster === record.cluster)), ...older];
}

/** Older agents have no lease to judge them by. */
function legacyRecords(context: AgentContext, service: ServiceKey): CountedRecord[] {
  const records = context.legacy
    .recordsOf(service)
    .filter(({ record }) => recordProblem(record) === undefined)
    .filter(({ cluster }) => mayExport(context.members.get(cluster)?.cluster.spec, service));
  return records.map(({ cluster, record, published }) => ({
    cluster,
    record,
    shard: readShard(record, cluster),
    status: { isCounted: true, isTrusted: true, isDraining: false },
    published: () => published,
  }));
}

function isFor(record: ServiceShard, exporter: string, reader: string | undefined): boolean {
  return reader === undefined || isExportedTo(record, { exporter, reader });
}
