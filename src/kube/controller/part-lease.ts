// The Lease by which a running part (proxy, dns, peering, …) reports that it serves: renewed while the part runs, removed
// when it stops in order. Failing writes are logged once until one succeeds, and never stop the part. part-slots.ts decides
// which Lease it is where several parts of a kind share a machine.

import { errorText, type Log } from '../../base/log.ts';
import { version } from '../../base/version.ts';
import type { Timer, World } from '../../base/world.ts';
import { getOrUndefined } from '../client/absent.ts';
import { apply, createIfAbsent, replaceWith } from '../client/apply.ts';
import type { Client } from '../client/client.ts';
import { createTicketCheck, type TicketCheck } from '../client/ticket-check.ts';
import { isNotFound } from '../objects/api-error.ts';
import { formatMicroTime, type Lease, leaseType } from '../objects/lease.ts';
import { namespaceType } from '../objects/namespace.ts';
import { apiVersionOf } from '../objects/object.ts';
import { managedByLabel, managerName, systemNamespace } from '../objects/ours.ts';
import {
  type PartName,
  partAnnotations,
  partLabel,
  partLeaseName,
  partLeaseSeconds,
  partRenewMs,
} from '../objects/part-lease.ts';
import { markReplaced, SlotTaken, slotId, slotsMax, slotVerdict, unlessTaken } from './part-slots.ts';

export interface PartLeaseOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly part: PartName;
  /** The machine or node, which distinguishes this part from its siblings elsewhere in the cluster. */
  readonly id: string;
  readonly node?: string;
  readonly mode?: string;
  /** Further annotations, read at each renewal. */
  readonly extras?: () => Readonly<Record<string, string>>;
  readonly renewMs?: number;
  readonly namespace?: string;
}

interface AdminPlace {
  readonly url: string;
  readonly pod?: string;
}

export interface PartLease {
  readonly part: PartName;
  /** The holder in the Lease: differs for every start. */
  readonly holder: string;
  /** Writes the address of the part's admin endpoint, at once. */
  announce(admin: AdminPlace): void;
  /** The extras have changed: writes them in a second, however often this is called meanwhile. */
  changed(): void;
  /** Why the last write to the home failed; empty if it did not. */
  problem(): string;
  /** Checks the ticket of a caller of its admin endpoint. */
  readonly refusalOf: TicketCheck;
  /** Removes the Lease, unless another process has taken it over. */
  stop(): Promise<void>;
}

const requestTimeoutMs = 5_000;
const soonMs = 1_000;
/** After a failed renewal: a home that is back should not show its parts as silent for long. */
const againMs = { min: 1_000, max: 2_000 };

export function keepPartLease(options: PartLeaseOptions): PartLease {
  const { client, world, log, part, id } = options;
  const renewMs = options.renewMs ?? partRenewMs;
  const namespace = options.namespace ?? systemNamespace;
  let slot = 1;
  /** Slots that were taken at the start, with the last renewal by their holder, until it is known whether that lives. */
  const doubtful = new Map<number, string>();
  const refOf = (which: number) => ({ namespace, name: partLeaseName(part, slotId(id, which)) });
  const fields = () => ({ lease: `${namespace}/${refOf(slot).name}` });
  // Differs for every start: the process that ends must not remove the Lease of the one that replaced it.
  const holder = `${id}_${world.random.uuid()}`;
  const request = { timeoutMs: requestTimeoutMs };
  const startedAt = formatMicroTime(world.clock.wallMs());
  let admin: AdminPlace | undefined;
  let held: Lease | undefined;
  let timer: Timer | undefined;
  let isStopped = false;
  let isDueSoon = false;
  /** Error of the last renewal; nothing was written yet at the start. */
  let problem = 'the home has not answered yet';
  let isFailing = false;
  let isPlaced = false;
  let writing: Promise<void> = Promise.resolve();

  function missingRights(): Record<string, string> {
    const missing = client.missingRights();
    return missing.length === 0 ? {} : { [partAnnotations.missingRights]: JSON.stringify(missing) };
  }

  function wanted(): Lease {
    return {
      apiVersion: apiVersionOf(leaseType),
      kind: leaseType.kind,
      metadata: {
        ...refOf(slot),
        labels: { [managedByLabel]: managerName, [partLabel]: part },
        annotations: {
          ...options.extras?.(),
          [partAnnotations.version]: version,
          ...missingRights(),
          ...(options.node === undefined ? {} : { [partAnnotations.node]: options.node }),
          ...(options.mode === undefined ? {} : { [partAnnotations.mode]: options.mode }),
          ...(admin === undefined ? {} : { [partAnnotations.admin]: admin.url }),
          ...(admin?.pod === undefined ? {} : { [partAnnotations.pod]: admin.pod }),
        },
      },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: partLeaseSeconds(renewMs),
        acquireTime: startedAt,
        renewTime: formatMicroTime(world.clock.wallMs()),
      },
    };
  }

  /** Throws SlotTaken. */
  async function writeSlot(): Promise<Lease> {
    const present = held;
    held = undefined;
    const change = unlessTaken(replaceWith(wanted()), { holder, nowMs: world.clock.wallMs() });
    const lease = { client, type: leaseType, change, options: request };
    try {
      return (await apply<Lease>({ ...lease, present, onConflict: 'retry' })).object;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // A home that never joined a clusterset has no such namespace yet.
      const missing = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
      await createIfAbsent(client, namespaceType, missing, request);
      return (await apply<Lease>({ ...lease, present: undefined, onConflict: 'retry' })).object;
    }
  }

  async function write(): Promise<Lease> {
    for (; slot <= slotsMax; slot += 1) {
      try {
        return await writeSlot();
      } catch (error) {
        if (!(error instanceof SlotTaken)) throw error;
        if (!isPlaced) doubtful.set(slot, error.renewTime);
      }
    }
    slot = 1;
    throw new Error(`${slotsMax} processes of ${part} on ${id} keep Leases already`);
  }

  /** Takes the first Lease whose holder is gone since before the start of this process. */
  async function changeOver(): Promise<void> {
    for (const [lower, renewTime] of doubtful) {
      const present = await getOrUndefined<Lease>(client, leaseType, refOf(lower), request);
      const verdict = slotVerdict(present, { renewTime, nowMs: world.clock.wallMs() });
      if (verdict === 'unknown') continue;
      doubtful.delete(lower);
      if (verdict === 'sibling') continue;
      doubtful.clear();
      const left = refOf(slot);
      [slot, held] = [lower, present];
      held = await write();
      if (refOf(slot).name !== left.name) await remove(left);
    }
  }

  async function renew(): Promise<void> {
    isDueSoon = false;
    try {
      held = await write();
      isPlaced = true;
      if (doubtful.size > 0) await changeOver();
      if (isFailing) log.info('the lease of this part is renewed again', fields());
      isFailing = false;
      problem = '';
    } catch (error) {
      if (!isFailing) log.warn('cannot renew the lease of this part', { ...fields(), error: errorText(error) });
      isFailing = true;
      problem = `the home does not take the lease of this part: ${errorText(error)}`;
    }
    if (!isStopped) timer = world.timers.after(waitMs(), next);
  }

  /** Sooner while the home takes nothing, or another Lease is about to become this part's. */
  function waitMs(): number {
    if (!isFailing && doubtful.size === 0) return renewMs;
    return Math.min(renewMs, againMs.min + world.random.float() * (againMs.max - againMs.min));
  }

  function next(): void {
    writing = renew();
  }

  async function remove(ref = refOf(slot)): Promise<void> {
    const present = await client.get<Lease>(leaseType, ref, request);
    if (present.spec?.holderIdentity !== holder) return;
    const { uid, resourceVersion } = present.metadata;
    await client.delete(leaseType, ref, { ...request, preconditions: { uid, resourceVersion } });
  }

  /**
   * Stopped before it was known whether this process replaced the holder of another Lease: marks the first one that was not
   * renewed, so that it is not shown as silent for days. A holder that lives removes the mark with its next renewal.
   */
  async function leaveWord(): Promise<void> {
    for (const [lower, renewTime] of doubtful) {
      const present = await getOrUndefined<Lease>(client, leaseType, refOf(lower), request);
      const marked = markReplaced(present, renewTime, holder);
      if (marked === undefined) continue;
      await client.update(leaseType, marked, request);
      return;
    }
  }

  next();
  // The Pod is what callers name; without one it is the address.
  const places = () => (admin === undefined ? [] : [admin.pod ?? admin.url]);
  return {
    part,
    holder,
    refusalOf: createTicketCheck({ client, clock: world.clock, places }),
    announce: (place) => {
      admin = place;
      writing = writing.then(() => {
        timer?.cancel();
        return isStopped ? undefined : renew();
      });
    },
    changed: () => {
      if (isDueSoon) return;
      isDueSoon = true;
      writing = writing.then(() => {
        timer?.cancel();
        if (!isStopped) timer = world.timers.after(soonMs, next);
      });
    },
    problem: () => problem,
    stop: async () => {
      isStopped = true;
      timer?.cancel();
      await writing;
      // Losing this race to the holder or to another process is as good.
      await leaveWord().catch((error: unknown) =>
        log.debug('the lease of an earlier process stays', { error: errorText(error) }),
      );
      await remove().catch((error: unknown) => {
        if (!isNotFound(error))
          log.info('the lease of this part stays until it expires', { ...fields(), error: errorText(error) });
      });
    },
  };
}
