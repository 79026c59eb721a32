// Follows the Leases of xDS servers and node proxies, and tells when the Envoys of this cluster have come or gone. A report
// that ends counts after a while: a server that restarts takes its Lease along, and its Envoys go on meanwhile.

import { isSameJson } from '../../base/json.ts';
import type { Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Client } from '../client/client.ts';
import { type Lease, leaseType } from '../objects/lease.ts';
import { partLabel } from '../objects/part-lease.ts';
import {
  type DataPlane,
  dataPlaneOf,
  type EnvoyRole,
  notCarriedBy,
  type Redirected,
} from '../objects/reports/data-plane.ts';
import { createInformer } from './informer.ts';

export interface DataPlaneWatchOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly namespace: string;
  readonly roles: readonly EnvoyRole[];
  /** The connections in question. */
  readonly needed?: Redirected;
  readonly onChange: () => void;
}

export interface DataPlaneWatch {
  of(role: EnvoyRole): DataPlane;
  stop(): void;
}

/** A part that falls silent changes no object. */
const lookMs = 5000;
/** Leases are renewed all the time: those of many nodes are looked at together. */
const soonMs = 500;
/** As long as a part takes to renew its Lease when the home is back. */
const endedMs = 10_000;

export function watchDataPlane(options: DataPlaneWatchOptions): DataPlaneWatch {
  const { client, world, log, namespace, roles, onChange } = options;
  const labelSelector = `${partLabel} in (xds,proxy)`;
  const leases = createInformer<Lease>({ client, world, log, type: leaseType, namespace, labelSelector });
  const planes = new Map<EnvoyRole, DataPlane>();
  /** Since when a role has lost what it had, on the monotonic clock. */
  const endedSinceMs = new Map<EnvoyRole, number>();
  let timer: Timer | undefined;
  let isSoon = false;

  function wait(delayMs: number): void {
    timer?.cancel();
    timer = world.timers.after(delayMs, look);
  }

  function soon(): void {
    if (isSoon) return;
    isSoon = true;
    wait(soonMs);
  }

  function look(): void {
    isSoon = false;
    wait(endedSinceMs.size > 0 ? 2 * soonMs : lookMs);
    // Leases that cannot be read grow old by themselves.
    if (!leases.hasSynced || leases.status().staleSinceMs !== undefined) return;
    let hasNews = false;
    for (const role of roles) if (judge(role)) hasNews = true;
    if (hasNews) onChange();
  }

  function judge(role: EnvoyRole): boolean {
    const now = dataPlaneOf([...leases.values()], role, world.clock.wallMs(), options.needed);
    const before = planes.get(role);
    const nowMs = world.clock.monotonicMs();
    if (isCarried(before) && !isCarried(now)) {
      const sinceMs = endedSinceMs.get(role) ?? nowMs;
      endedSinceMs.set(role, sinceMs);
      if (nowMs - sinceMs < endedMs) return false;
    }
    endedSinceMs.delete(role);
    planes.set(role, now);
    // One more Envoy is no news.
    return before === undefined || !isSameJson(notCarriedBy(before), notCarriedBy(now));
  }

  leases.on(soon);
  leases.start();
  leases.whenSynced().then(look, () => {});
  return {
    of: (role) => planes.get(role) ?? { kind: 'unknown' },
    stop: () => {
      timer?.cancel();
      leases.stop();
    },
  };
}

function isCarried(plane: DataPlane | undefined): boolean {
  return plane !== undefined && notCarriedBy(plane) === undefined;
}
