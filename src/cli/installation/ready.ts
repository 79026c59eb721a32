// Waits until every workload of an installation runs the newest Pods, and names the one it waits for.

import { sleep } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import type { Manifest } from '../../kube/objects/manifest.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { CommandError } from '../exit-codes.ts';
import type { ClusterSetDeps } from '../with-home.ts';
import { describe } from './describe.ts';

export interface Workload extends KubernetesObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: { readonly spec?: { readonly containers?: readonly { readonly image?: string }[] } };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
    readonly desiredNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberReady?: number;
  };
}

const lookMs = 1000;

export async function untilReady(
  deps: ClusterSetDeps,
  client: Client,
  request: { readonly objects: readonly Manifest[]; readonly timeoutMs: number },
): Promise<void> {
  const { clock, timers } = deps.world;
  const deadlineMs = clock.monotonicMs() + request.timeoutMs;
  for (const { type, object } of request.objects.filter(({ type: { group } }) => group === 'apps')) {
    const name = describe(type, object.metadata);
    deps.print(`waiting for ${name}`);
    for (;;) {
      const missing = missingPods(await client.get<Workload>(type, object.metadata));
      if (missing === undefined) break;
      if (clock.monotonicMs() >= deadlineMs) throw new CommandError('notReady', `${name} is not ready: ${missing}`);
      await sleep(timers, lookMs);
    }
  }
}

/** The missing Pods in words; undefined if none are missing. */
export function missingPods({ kind, metadata, spec, status = {} }: Workload): string | undefined {
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0))
    return 'its controller has not seen the change yet';
  const isDaemon = kind === 'DaemonSet';
  const wanted = isDaemon ? (status.desiredNumberScheduled ?? 0) : (spec?.replicas ?? 1);
  const updated = (isDaemon ? status.updatedNumberScheduled : status.updatedReplicas) ?? 0;
  const ready = (isDaemon ? status.numberReady : status.readyReplicas) ?? 0;
  return updated >= wanted && ready >= wanted ? undefined : `${Math.min(updated, ready)} of ${wanted} Pods are ready`;
}
