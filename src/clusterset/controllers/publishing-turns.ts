// Keeps the order of exporters when their records are stored anew, as after a restore of the broker: the age of a
// record counts from when the broker stored it, so a later exporter waits for the earlier ones. Only re-created
// records wait. The order is kept on the ServiceExport, for an agent that starts during the restore.

import { getOrUndefined } from '../../kube/client/absent.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import type { AgentContext } from '../copies/context.ts';
import { type ServiceExport, serviceExportType } from '../kinds/service-export.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { exportedAfterAnnotation } from '../rules/agent-marks.ts';
import { parseServiceKey, recordName } from '../rules/names.ts';

export interface PublishingTurns {
  /** The clusters that export the service, oldest first. */
  note(key: string, clusters: readonly string[]): Promise<void>;
  /** How long our record of the service is to wait before it is made again; 0 is now. */
  waitMs(key: string): Promise<number>;
  /** It is published: from now on its order is kept. */
  keep(key: string): void;
  /** It is withdrawn. A copy may show our record for a while: until it is published again, its order is not noted. */
  forget(key: string): Promise<void>;
}

/** A broker stamps whole seconds: two records in one second would be of one age. */
const stampMs = 1_100;
const lookAgainMs = 500;
/** For those that do not come back. */
const patienceMs = 30_000;
/** The copies of several clusters follow one after the other, and what is lost may already be back behind us. */
const lostMs = 60_000;

interface Turn {
  /** Clusters that were before us; since when they no longer are, if so. */
  readonly before: Map<string, number | undefined>;
  waitingSinceMs?: number;
  /** The records that we wait for, since all of them are there. */
  met?: { readonly records: string; readonly sinceMs: number };
}

export function createPublishingTurns({
  broker,
  home,
  copies,
  members,
  membership,
  world,
}: AgentContext): PublishingTurns {
  const turns = new Map<string, Turn>();
  /** Services with a ServiceExport that are not published. */
  const withdrawn = new Set<string>();
  const nowMs = () => world.clock.monotonicMs();

  function turnOf(key: string): Turn | undefined {
    const known = turns.get(key);
    if (known !== undefined) return known;
    const written = writtenOn(copies.exports.get(key));
    if (written.length === 0) return undefined;
    const turn: Turn = { before: new Map(written.map((cluster) => [cluster, undefined])) };
    turns.set(key, turn);
    return turn;
  }

  async function note(key: string, clusters: readonly string[]): Promise<void> {
    const own = clusters.indexOf(membership.clusterId);
    if (own < 0 || withdrawn.has(key)) return;
    const known = turnOf(key)?.before ?? new Map<string, number | undefined>();
    const before = new Map<string, number | undefined>(clusters.slice(0, own).map((cluster) => [cluster, undefined]));
    for (const [cluster, sinceMs = nowMs()] of known)
      if (!before.has(cluster) && nowMs() - sinceMs < lostMs) before.set(cluster, sinceMs);
    if (before.size === 0) turns.delete(key);
    else turns.set(key, { before });
    await write(key, [...before.keys()]);
  }

  async function write(key: string, before: readonly string[]): Promise<void> {
    const serviceExport = copies.exports.get(key);
    const text = before.join(',');
    if (serviceExport === undefined || writtenOn(serviceExport).join(',') === text) return;
    const body = { metadata: { annotations: { [exportedAfterAnnotation]: text === '' ? null : text } } };
    await home.patch(serviceExportType, serviceExport.metadata, { kind: 'merge', body }).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
  }

  async function forget(key: string): Promise<void> {
    if (copies.exports.get(key) === undefined) withdrawn.delete(key);
    else withdrawn.add(key);
    turns.delete(key);
    await write(key, []);
  }

  // Asks the broker itself: copies may be behind and still show what it has lost.
  async function waitMs(key: string): Promise<number> {
    const turn = turnOf(key);
    if (turn === undefined) return 0;
    turn.waitingSinceMs ??= nowMs();
    if (nowMs() - turn.waitingSinceMs >= patienceMs) return 0;
    const service = parseServiceKey(key);
    const uids: string[] = [];
    for (const [cluster, lostSinceMs] of turn.before) {
      const member = members.get(cluster);
      const isForgotten = lostSinceMs !== undefined && turn.waitingSinceMs - lostSinceMs >= lostMs;
      if (member === undefined || isForgotten) continue;
      const ref = { namespace: member.cluster.spec.namespace, name: recordName(service) };
      const shard = await getOrUndefined<ServiceShard>(broker, serviceShardType, ref);
      if (shard === undefined) return lookAgainMs;
      uids.push(shard.metadata.uid ?? '');
    }
    const records = uids.join();
    if (turn.met?.records !== records) turn.met = { records, sinceMs: nowMs() };
    return Math.max(0, turn.met.sinceMs + stampMs - nowMs());
  }

  return { note, waitMs, keep: (key) => void withdrawn.delete(key), forget };
}

function writtenOn(serviceExport: ServiceExport | undefined): string[] {
  const text = serviceExport?.metadata.annotations?.[exportedAfterAnnotation] ?? '';
  return text.split(',').filter((cluster) => cluster !== '');
}
