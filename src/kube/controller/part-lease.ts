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

interface LeaseRef {
  readonly namespace: string;
  readonly name: string;
}

const request = { timeoutMs: 5_000 };
const soonMs = 1_000;
/** After a failed renewal: a home that is back should not show its parts as silent for long. */
const againMs = { min: 1_000, max: 2_000 };

export function keepPartLease(options: PartLeaseOptions): PartLease {
  const kept = new KeptLease(options);
  kept.start();
  return kept;
}

class KeptLease implements PartLease {
  readonly part: PartName;
  readonly holder: string;
  readonly refusalOf: TicketCheck;
  readonly #options: PartLeaseOptions;
  readonly #renewMs: number;
  readonly #namespace: string;
  readonly #startedAt: string;
  #slot = 1;
  /** Slots that were taken at the start, with the last renewal by their holder, until it is known whether that lives. */
  readonly #doubtful = new Map<number, string>();
  #admin: AdminPlace | undefined;
  #held: Lease | undefined;
  #timer: Timer | undefined;
  #isStopped = false;
  #isDueSoon = false;
  /** Error of the last renewal; nothing was written yet at the start. */
  #problem = 'the home has not answered yet';
  #isFailing = false;
  #isPlaced = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: PartLeaseOptions) {
    const { client, world, part, id } = options;
    this.#options = options;
    this.part = part;
    // Differs for every start: the process that ends must not remove the Lease of the one that replaced it.
    this.holder = `${id}_${world.random.uuid()}`;
    this.#renewMs = options.renewMs ?? partRenewMs;
    this.#namespace = options.namespace ?? systemNamespace;
    this.#startedAt = formatMicroTime(world.clock.wallMs());
    this.refusalOf = createTicketCheck({ client, clock: world.clock, places: () => this.#places() });
  }

  start(): void {
    this.#writing = this.#renew();
  }

  announce(admin: AdminPlace): void {
    this.#admin = admin;
    this.#writing = this.#writing.then(() => {
      this.#timer?.cancel();
      return this.#isStopped ? undefined : this.#renew();
    });
  }

  changed(): void {
    if (this.#isDueSoon) return;
    this.#isDueSoon = true;
    this.#writing = this.#writing.then(() => {
      this.#timer?.cancel();
      if (!this.#isStopped) this.#timer = this.#options.world.timers.after(soonMs, () => this.start());
    });
  }

  problem(): string {
    return this.#problem;
  }

  async stop(): Promise<void> {
    const { log } = this.#options;
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#writing;
    // Losing this race to the holder or to another process is as good.
    await this.#leaveWord().catch((error: unknown) =>
      log.debug('the lease of an earlier process stays', { error: errorText(error) }),
    );
    await this.#remove(this.#refOf(this.#slot)).catch((error: unknown) => {
      if (!isNotFound(error))
        log.info('the lease of this part stays until it expires', { ...this.#fields(), error: errorText(error) });
    });
  }

  async #renew(): Promise<void> {
    const { log, world } = this.#options;
    this.#isDueSoon = false;
    try {
      this.#held = await this.#write();
      this.#isPlaced = true;
      if (this.#doubtful.size > 0) await this.#changeOver();
      if (this.#isFailing) log.info('the lease of this part is renewed again', this.#fields());
      this.#isFailing = false;
      this.#problem = '';
    } catch (error) {
      const text = errorText(error);
      if (!this.#isFailing) log.warn('cannot renew the lease of this part', { ...this.#fields(), error: text });
      this.#isFailing = true;
      this.#problem = `the home does not take the lease of this part: ${text}`;
    }
    if (!this.#isStopped) this.#timer = world.timers.after(this.#waitMs(), () => this.start());
  }

  /** Sooner while the home takes nothing, or another Lease is about to become this part's. */
  #waitMs(): number {
    if (!this.#isFailing && this.#doubtful.size === 0) return this.#renewMs;
    return Math.min(this.#renewMs, againMs.min + this.#options.world.random.float() * (againMs.max - againMs.min));
  }

  async #write(): Promise<Lease> {
    for (; this.#slot <= slotsMax; this.#slot += 1) {
      try {
        return await this.#writeSlot();
      } catch (error) {
        if (!(error instanceof SlotTaken)) throw error;
        if (!this.#isPlaced) this.#doubtful.set(this.#slot, error.renewTime);
      }
    }
    this.#slot = 1;
    const { part, id } = this.#options;
    throw new Error(`${slotsMax} processes of ${part} on ${id} keep Leases already`);
  }

  /** Throws SlotTaken. */
  async #writeSlot(): Promise<Lease> {
    const { client, world } = this.#options;
    const present = this.#held;
    this.#held = undefined;
    const change = unlessTaken(replaceWith(this.#wanted()), { holder: this.holder, nowMs: world.clock.wallMs() });
    const lease = { client, type: leaseType, change, options: request };
    try {
      return (await apply<Lease>({ ...lease, present, onConflict: 'retry' })).object;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // A home that never joined a clusterset has no such namespace yet.
      const missing = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: this.#namespace } };
      await createIfAbsent(client, namespaceType, missing, request);
      return (await apply<Lease>({ ...lease, present: undefined, onConflict: 'retry' })).object;
    }
  }

  #wanted(): Lease {
    const { part, node, mode, extras, world } = this.#options;
    const admin = this.#admin;
    return {
      apiVersion: apiVersionOf(leaseType),
      kind: leaseType.kind,
      metadata: {
        ...this.#refOf(this.#slot),
        labels: { [managedByLabel]: managerName, [partLabel]: part },
        annotations: {
          ...extras?.(),
          [partAnnotations.version]: version,
          ...this.#missingRights(),
          ...(node === undefined ? {} : { [partAnnotations.node]: node }),
          ...(mode === undefined ? {} : { [partAnnotations.mode]: mode }),
          ...(admin === undefined ? {} : { [partAnnotations.admin]: admin.url }),
          ...(admin?.pod === undefined ? {} : { [partAnnotations.pod]: admin.pod }),
        },
      },
      spec: {
        holderIdentity: this.holder,
        leaseDurationSeconds: partLeaseSeconds(this.#renewMs),
        acquireTime: this.#startedAt,
        renewTime: formatMicroTime(world.clock.wallMs()),
      },
    };
  }

  #missingRights(): Record<string, string> {
    const missing = this.#options.client.missingRights();
    return missing.length === 0 ? {} : { [partAnnotations.missingRights]: JSON.stringify(missing) };
  }

  /** Takes the first Lease whose holder is gone since before the start of this process. */
  async #changeOver(): Promise<void> {
    for (const [lower, renewTime] of this.#doubtful) {
      const present = await this.#read(lower);
      const verdict = slotVerdict(present, { renewTime, nowMs: this.#options.world.clock.wallMs() });
      if (verdict === 'unknown') continue;
      this.#doubtful.delete(lower);
      if (verdict === 'sibling') continue;
      this.#doubtful.clear();
      const left = this.#refOf(this.#slot);
      [this.#slot, this.#held] = [lower, present];
      this.#held = await this.#write();
      if (this.#refOf(this.#slot).name !== left.name) await this.#remove(left);
    }
  }

  /**
   * Stopped before it was known whether this process replaced the holder of another Lease: marks the first one that was not
   * renewed, so that it is not shown as silent for days. A holder that lives removes the mark with its next renewal.
   */
  async #leaveWord(): Promise<void> {
    for (const [lower, renewTime] of this.#doubtful) {
      const marked = markReplaced(await this.#read(lower), renewTime, this.holder);
      if (marked === undefined) continue;
      await this.#options.client.update(leaseType, marked, request);
      return;
    }
  }

  async #remove(ref: LeaseRef): Promise<void> {
    const { client } = this.#options;
    const present = await client.get<Lease>(leaseType, ref, request);
    if (present.spec?.holderIdentity !== this.holder) return;
    const { uid, resourceVersion } = present.metadata;
    await client.delete(leaseType, ref, { ...request, preconditions: { uid, resourceVersion } });
  }

  #read(slot: number): Promise<Lease | undefined> {
    return getOrUndefined<Lease>(this.#options.client, leaseType, this.#refOf(slot), request);
  }

  #refOf(slot: number): LeaseRef {
    const { part, id } = this.#options;
    return { namespace: this.#namespace, name: partLeaseName(part, slotId(id, slot)) };
  }

  #fields(): { readonly lease: string } {
    return { lease: `${this.#namespace}/${this.#refOf(this.#slot).name}` };
  }

  /** The Pod is what callers name; without one it is the address. */
  #places(): string[] {
    return this.#admin === undefined ? [] : [this.#admin.pod ?? this.#admin.url];
  }
}
