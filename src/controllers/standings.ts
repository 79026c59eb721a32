// Which records of one service count for this cluster: every member's shard, unless its lease has run out and the policy
// withdraws it. Reads the shared copies; decides by the pure rules of the model.

import type { ServiceKey } from '../model/names-clusterset.ts';
import { recordName } from '../model/names-clusterset.ts';
import { isExportedTo, type ServiceShard } from '../model/service-shard.ts';
import type { Shard } from '../model/shard.ts';
import { type Standing, standing } from '../model/staleness.ts';
import type { AgentContext } from './context.ts';
import { hasMemberSynced, type Member } from './members.ts';
import { readShard } from './shard-record.ts';

export interface MemberRecord {
  readonly member: Member;
  readonly record: ServiceShard;
  readonly shard: Shard;
  readonly standing: Standing;
}

/** All exporters whose shards count. With `onlyFor`, those that the named cluster may import from. */
export function countedRecords(
  context: AgentContext,
  service: ServiceKey,
  options: { onlyFor?: string } = {},
): MemberRecord[] {
  const records: MemberRecord[] = [];
  for (const member of context.members.all()) {
    const record = shardOf(member, service);
    if (record === undefined) continue;
    if (options.onlyFor !== undefined && !isExportedTo(record, { exporter: member.id, reader: options.onlyFor }))
      continue;
    const now = standing(context.verdict(member.id), record.spec.onStale ?? context.policy().staleness);
    if (now.isCounted) records.push({ member, record, shard: readShard(record, member.id), standing: now });
  }
  return records;
}

export function shardOf(member: Member, service: ServiceKey): ServiceShard | undefined {
  return member.shards.get(`${member.cluster.spec.namespace}/${recordName(service)}`);
}

/** Members whose records are not all here yet: what they had before must not be taken for withdrawn. */
export function unsyncedMembers(context: AgentContext): string[] {
  return context.members
    .all()
    .filter((member) => !hasMemberSynced(member))
    .map(({ id }) => id);
}
