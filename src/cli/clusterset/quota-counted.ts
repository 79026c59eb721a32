// A Kubernetes counts a new ResourceQuota soon, unless the definitions of its kinds are so new that the counter has not found
// them: then only at its next full round, minutes later, and it refuses everything until then. A quota that is made anew
// once they are found is counted at once.

import { sleep } from '../../base/world.ts';
import { heartbeatType } from '../../clusterset/kinds/heartbeat.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { install } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { isQuotaUncounted } from '../../kube/objects/api-error.ts';
import type { Manifest } from '../../kube/objects/manifest.ts';
import type { CliDeps } from '../with-home.ts';

/** The counter looks for new definitions every 30 seconds. */
const patienceMs = 90_000;
const lookMs = 1000;
const againMs = 10_000;

interface QuotaRequest {
  readonly client: Client;
  readonly clusterId: string;
  /** The member's. */
  readonly namespace: string;
  /** To make it anew; without the right to do so it is only waited for. */
  readonly quota?: Manifest;
}

/** Whether it was counted in time. */
export async function untilQuotaCounted(
  { world, warn }: Pick<CliDeps, 'world' | 'warn'>,
  { client, clusterId, namespace, quota }: QuotaRequest,
): Promise<boolean> {
  const { clock, timers } = world;
  const startMs = clock.monotonicMs();
  let madeMs = startMs;
  while (!(await isCounted(client, namespace))) {
    const nowMs = clock.monotonicMs();
    if (nowMs === startMs)
      warn?.(`the broker has not counted the quota of cluster ${clusterId} yet; waiting, up to ${patienceMs / 1000} s`);
    if (nowMs - startMs >= patienceMs) return false;
    if (quota !== undefined && nowMs - madeMs >= againMs) {
      await deleteIfPresent(client, quota.type, quota.object.metadata);
      await install(client, quota);
      madeMs = nowMs;
    }
    await sleep(timers, lookMs);
  }
  return true;
}

/** By a write that is not made: quotas are held against those too. Any other refusal is not about counting. */
async function isCounted(client: Client, namespace: string): Promise<boolean> {
  const { group, version, kind } = heartbeatType;
  const metadata = { name: 'portolan-quota-check', namespace };
  try {
    await client.create(heartbeatType, { apiVersion: `${group}/${version}`, kind, metadata }, { isDryRun: true });
    return true;
  } catch (error) {
    return !isQuotaUncounted(error);
  }
}
