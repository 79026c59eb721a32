// Renews the Heartbeat of this member at the broker. Notices when the broker holds something else than the last renewal.

import { version } from '../../base/version.ts';
import type { World } from '../../base/world.ts';
import { apply } from '../../kube/client/apply.ts';
import type { Client, RequestOptions } from '../../kube/client/client.ts';
import { formatMicroTime, type Lease } from '../../kube/objects/lease.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import { partAnnotations } from '../../kube/objects/part-lease.ts';
import { type Heartbeat, heartbeatType } from '../kinds/heartbeat.ts';
import { memberLeaseName } from '../rules/broker-layout.ts';
import { homeAwayAnnotations, vouchedRevisionOf } from '../rules/leases/home-away.ts';
import { formatRenewals, renewalsAnnotation, renewalsOf } from '../rules/leases/renewal.ts';

export interface OwnLeaseOptions {
  readonly world: Pick<World, 'clock'>;
  readonly broker: Client;
  readonly clusterId: string;
  /** This member's namespace at the broker. */
  readonly namespace: string;
  readonly leaseMs: () => number;
  /** Annotations of the lease, replacing the present ones. */
  readonly annotations: (present: Lease | undefined) => Record<string, string>;
  /** Wall time since which our home does not answer; undefined while it does. */
  readonly homeAwaySinceMs?: () => number | undefined;
  /** Whether this member watches the heartbeats of all others. */
  readonly isJudging: () => boolean;
}

export interface Renewed {
  /** Revision of the broker after this renewal. */
  readonly revision: number;
  /** The broker held something else than our last renewal: it was put back to an older copy, or somebody wrote it. */
  readonly isStrange: boolean;
}

export class OwnLease {
  readonly #options: OwnLeaseOptions;
  /** Tokens that our lease may hold now: the last acknowledged renewal, and those tried since. */
  #ours = new Set<string>();
  /** Something else was found there, and not reported yet: a later try finds what an earlier one wrote. */
  #isStrange = false;
  #last: Heartbeat | undefined;
  /** Whether a renewal of this run was acknowledged: until then nothing that is found there is strange. */
  #hasRenewed = false;

  constructor(options: OwnLeaseOptions) {
    this.#options = options;
  }

  /** Takes over the heartbeat of an earlier run. */
  adopt(left: Heartbeat | undefined): void {
    this.#last = left;
  }

  /** `copy` is the newest that a watch has brought, if there is one. */
  async renew(copy: Heartbeat | undefined, options: RequestOptions): Promise<Renewed> {
    let renewTime = '';
    const change = (there: Heartbeat | undefined) => {
      const lease = this.#leaseFor(there);
      if (this.#hasRenewed && !this.#ours.has(there?.spec?.renewTime ?? '')) this.#isStrange = true;
      renewTime = lease.spec!.renewTime!;
      this.#ours.add(renewTime);
      return lease;
    };
    const { broker: client } = this.#options;
    const type = heartbeatType;
    const present = isBehind(copy, this.#last) ? this.#last : copy;
    const { object } = await apply<Heartbeat>({ client, type, present, change, onConflict: 'retry', options });
    this.#ours = new Set([renewTime]);
    this.#last = object;
    this.#hasRenewed = true;
    const isStrange = this.#isStrange;
    this.#isStrange = false;
    return { revision: Number(object.metadata.resourceVersion), isStrange };
  }

  #leaseFor(present: Heartbeat | undefined): Heartbeat {
    const { world, clusterId, namespace, leaseMs, annotations, isJudging, homeAwaySinceMs } = this.#options;
    const vouchedRevision = present === undefined ? 0 : vouchedRevisionOf(present);
    const metadata = present?.metadata ?? { name: memberLeaseName, namespace };
    const wallMs = world.clock.wallMs();
    const renewals = formatRenewals(renewalsOf(present), { wallMs, spanMs: 2 * leaseMs() });
    const told = {
      ...annotations(present),
      ...(renewals === '' ? {} : { [renewalsAnnotation]: renewals }),
      ...homeAwayAnnotations(homeAwaySinceMs?.(), vouchedRevision),
      [partAnnotations.version]: version,
    };
    return {
      apiVersion: apiVersionOf(heartbeatType),
      kind: heartbeatType.kind,
      metadata: { ...metadata, annotations: told },
      spec: {
        ...present?.spec,
        // Agents of the release before look for it.
        reads: 'AllNamespaces',
        judging: isJudging(),
        holderIdentity: clusterId,
        leaseDurationSeconds: Math.ceil(leaseMs() / 1000),
        renewTime: formatMicroTime(wallMs),
      },
    };
  }
}

/** A watch that was cut off shows less than the answer to our last renewal; it does not show another history. */
function isBehind(copy: Heartbeat | undefined, last: Heartbeat | undefined): boolean {
  if (copy === undefined || last === undefined) return copy === undefined;
  return Number(copy.metadata.resourceVersion) < Number(last.metadata.resourceVersion);
}
