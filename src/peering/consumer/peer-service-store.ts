// Stores the services of one peer as PeerServices in the home. Many writes are in flight at once; those of one id
// keep their order, and of several that wait only the newest is made. A write that the home cannot take now is
// retried until it can; one refused for its content is reported as refused. Changes and deletions by others are
// reverted.

import type { Log } from '../../base/log.ts';
import { errorText } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import { Queue } from '../../base/queue.ts';
import type { Timer, World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { Reflector } from '../../kube/controller/reflector.ts';
import { type ApiError, isForbidden, isNotFound } from '../../kube/objects/api-error.ts';
import {
  type PeerService,
  peerLabel,
  peerServiceName,
  peerServiceType,
  sharedServiceIn,
  specOf,
} from '../kinds/peer-service.ts';
import type { SharedService } from '../kinds/shared-service.ts';
import { homeRefusal, isRefusedForGood } from '../rules/reason.ts';
import { type HeldServices, hashText } from '../session/held-services.ts';
import {
  isAsStored,
  isNewer,
  noHash,
  objectOf,
  type StoredService,
  statusToRestore,
  storedFrom,
} from './stored-service.ts';

import {
  isApplied,
  type Lane,
  newLane,
  type PeerServiceStatusPatch,
  type PutResult,
  repairOf,
  stored,
  type Told,
  type Wanted,
} from './write-lane.ts';

export type { StoredService } from './stored-service.ts';
export type { PutResult } from './write-lane.ts';

export interface PeerServiceStoreOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly namespace: string;
  readonly peer: string;
  readonly writesMax?: number;
  /** How long after the start the home is followed, if nothing is being written then. */
  readonly followAfterMs?: number;
  /** Called for each service that came, changed or went (undefined), once it is on disk. */
  readonly onStored?: (id: string, stored: StoredService | undefined) => void;
}

/** As many as an owner sends before it waits: the home commits together what comes together. */
const writesInFlight = 1024;
/** How often we wait for a quiet moment to begin following the home. */
const quietAttemptsMax = 24;
/** A change by others is reverted no faster than this, so that two writers that disagree do not run hot. */
const mendAfterMs = 500;
/** A home that is starting may forbid what it allows a moment later. */
const forbiddenMax = 4;
const retry = { firstMs: 100, delayMsMax: 30_000 };

export class PeerServiceStore {
  readonly #options: PeerServiceStoreOptions;
  readonly #stored = new Map<string, StoredService>();
  readonly #lanes = new Map<string, Lane>();
  readonly #queue: Queue;
  readonly #lines: LogBudget;
  #reflector: Reflector | undefined;
  /** Ids in the list that is coming in; undefined while none is. */
  #listed: Set<string> | undefined;
  #isOtherHistory = false;
  #following: Timer | undefined;
  #hasLoaded = false;
  #isStopped = false;
  #lastSeenMs = 0;
  #quarantined = 0;
  #bytes = 0;

  constructor(options: PeerServiceStoreOptions) {
    this.#options = options;
    this.#lines = new LogBudget(options.world.clock);
    this.#queue = new Queue({
      name: `peer-services`,
      world: options.world,
      concurrency: options.writesMax ?? writesInFlight,
      backoff: retry,
      work: async (id) => {
        await this.#work(id);
        return undefined;
      },
      onFailure: ({ key, error, retryMs }) =>
        this.#warn('a peer service could not be stored yet', { id: key, retryMs, error: errorText(error) }),
    });
    this.#queue.start();
  }

  /** Reads what is on disk, and follows it from a little later on. Services that may no longer be held are removed. */
  async load(isAllowed: (service: SharedService) => boolean): Promise<void> {
    if (!this.#hasLoaded) await this.#readAll();
    for (const { id, spec } of this.#stored.values()) {
      const service = sharedServiceIn({ spec } as PeerService);
      if (service !== undefined && !isAllowed(service)) this.remove([id]);
    }
    if (this.#following === undefined) this.#followSoon();
  }

  // The first batch is the largest, and its events need not be read back.
  #followSoon(attempt = 1): void {
    const { world, followAfterMs = 5000 } = this.#options;
    this.#following = world.timers.after(followAfterMs, () => {
      if (this.#lanes.size > 0 && attempt < quietAttemptsMax) this.#followSoon(attempt + 1);
      else this.#follow();
    });
  }

  async #readAll(): Promise<void> {
    const { client, namespace } = this.#options;
    const selection = { namespace, labelSelector: this.#selector() };
    for await (const page of client.listPaged<PeerService>(peerServiceType, selection))
      for (const object of page.items) if (this.#isOurs(object)) this.#took(object);
    this.#hasLoaded = true;
  }

  #follow(): void {
    if (this.#isStopped) return;
    const { client, world, log, namespace } = this.#options;
    this.#reflector = new Reflector<PeerService>({
      ...{ client, world, log, namespace },
      type: peerServiceType,
      labelSelector: this.#selector(),
      sink: {
        listBegins: (history) => {
          this.#listed = new Set();
          this.#isOtherHistory = history === 'other';
        },
        upsert: (object) => this.#told(object, { object }),
        remove: (object) => this.#told(object, { goneIn: object.metadata.resourceVersion ?? '' }),
        listEnds: () => this.#listEnds(),
      },
      onState: () => {},
    });
    this.#reflector.start();
  }

  #selector(): string {
    return `${peerLabel}=${this.#options.peer}`;
  }

  #isOurs({ metadata, spec }: PeerService): boolean {
    const { peer } = this.#options;
    return spec.peer === peer && metadata.name === peerServiceName(peer, spec.id);
  }

  // By its name, if another writer changed its content.
  #idOf(object: PeerService): string | undefined {
    if (this.#isOurs(object)) return object.spec.id;
    const id = object.metadata.name.slice(this.#options.peer.length + 1);
    const isKnown = this.#stored.has(id) && object.metadata.name === peerServiceName(this.#options.peer, id);
    return isKnown ? id : undefined;
  }

  #told(object: PeerService, told: Told): void {
    const id = this.#idOf(object);
    if (id === undefined) return;
    this.#listed?.add(id);
    const lane = this.#lanes.get(id);
    if (lane === undefined) this.#judge(id, told);
    else lane.told = told;
  }

  #listEnds(): void {
    for (const id of this.#stored.keys()) if (!this.#listed?.has(id) && !this.#lanes.has(id)) this.#doubt(id);
    this.#listed = undefined;
    this.#isOtherHistory = false;
  }

  // Most of what the home tells are our own writes, and what others say in the status. Foreign changes are read from
  // the home before a reaction, because the event may be old.
  #judge(id: string, told: Told): void {
    const stored = this.#stored.get(id);
    if ('goneIn' in told) {
      if (stored !== undefined && isNewer(told.goneIn, stored.resourceVersion)) this.#doubt(id);
      return;
    }
    const { object } = told;
    const version = object.metadata.resourceVersion ?? '';
    if (stored === undefined) return this.#doubt(id);
    if (!isNewer(version, stored.resourceVersion) && !this.#isOtherHistory) return;
    if (isAsStored(object, stored)) this.#refresh(object, stored);
    else this.#doubt(id);
  }

  #doubt(id: string): void {
    this.#lane(id).isDoubtful = true;
    this.#queue.addAfter(id, mendAfterMs);
  }

  get size(): number {
    return this.#stored.size;
  }

  /** How many exist only to say why they were refused. */
  get quarantined(): number {
    return this.#quarantined;
  }

  /** As it will be when everything that waits is written. */
  statusOf(id: string): PeerServiceStatusPatch {
    const lane = this.#lanes.get(id);
    return { ...this.#stored.get(id)?.status, ...lane?.sending, ...lane?.status };
  }

  get(id: string): StoredService | undefined {
    return this.#stored.get(id);
  }

  values(): Iterable<StoredService> {
    return this.#stored.values();
  }

  /** The stored services as a session sees them: without those about to be removed. */
  readonly held: HeldServices = heldIn(this.#stored, this.#lanes, () => this.#bytes);

  put(service: SharedService, hash: Uint8Array, done: (result: PutResult) => void): void {
    this.#want(service.id, { kind: 'present', spec: specOf(this.#options.peer, service), hash }, done);
  }

  /** Keeps a service of which only its id is known, to say why it was refused. */
  quarantine(id: string, status: PeerServiceStatusPatch): void {
    this.#want(id, { kind: 'present', spec: { peer: this.#options.peer, id }, hash: noHash }, () => {});
    this.setStatus(id, status);
  }

  remove(ids: readonly string[], done: () => void = () => {}): void {
    let waiting = ids.length;
    if (waiting === 0) return done();
    const one = () => {
      waiting -= 1;
      if (waiting === 0) done();
    };
    for (const id of ids) this.#want(id, { kind: 'absent' }, one);
  }

  setStatus(id: string, patch: PeerServiceStatusPatch): void {
    const lane = this.#lane(id);
    lane.status = { ...lane.status, ...patch };
    this.#queue.add(id);
  }

  /** All at once, in one request. */
  async removeAll(): Promise<void> {
    const { client, namespace, peer } = this.#options;
    this.#lanes.clear();
    await client.deleteCollection(peerServiceType, { namespace, labelSelector: `${peerLabel}=${peer}` });
    for (const id of [...this.#stored.keys()]) this.#forget(id);
  }

  whenIdle(): Promise<void> {
    return this.#queue.whenIdle();
  }

  /** Writes under way end; waiting ones are dropped without a report. */
  stop(): Promise<void> {
    this.#isStopped = true;
    this.#following?.cancel();
    this.#reflector?.stop();
    return this.#queue.stop();
  }

  #want(id: string, wanted: Wanted, done: (result: PutResult) => void): void {
    const lane = this.#lane(id);
    lane.wanted = wanted;
    lane.waiters.push(done);
    this.#queue.add(id);
  }

  #lane(id: string): Lane {
    let lane = this.#lanes.get(id);
    if (lane === undefined) this.#lanes.set(id, (lane = newLane()));
    return lane;
  }

  async #work(id: string): Promise<void> {
    const lane = this.#lanes.get(id);
    if (lane === undefined) return;
    if (lane.isDoubtful && lane.wanted === undefined) await this.#look(id, lane);
    const { wanted, waiters } = lane;
    lane.waiters = [];
    try {
      const result = wanted === undefined ? stored : await this.#write(id, wanted, lane);
      if (lane.wanted === wanted) lane.wanted = undefined;
      for (const waiter of waiters) waiter(result);
      await this.#writeStatus(id, lane);
    } catch (error) {
      lane.waiters = [...waiters, ...lane.waiters];
      throw error;
    }
    const isIdle = lane.wanted === undefined && lane.status === undefined && lane.waiters.length === 0;
    if (!isIdle || lane.isDoubtful) return this.#queue.add(id);
    this.#lanes.delete(id);
    if (lane.told !== undefined) this.#judge(id, lane.told);
  }

  async #write(id: string, wanted: Wanted, lane: Lane): Promise<PutResult> {
    if (wanted.kind === 'absent') {
      await this.#delete(id);
      return stored;
    }
    const before = this.#stored.get(id)?.hash ?? '';
    const isThere = before !== '' && before === hashText(wanted.hash) && !lane.isDoubtful && !wanted.isRepair;
    if (isThere) return stored;
    try {
      const object = await this.#createOrUpdate(id, wanted, lane);
      lane.isDoubtful = false;
      this.#took(object, { isAsWritten: true });
      return stored;
    } catch (error) {
      if (isForbidden(error)) lane.forbidden += 1;
      if (!isRefusedForGood(error) && lane.forbidden < forbiddenMax) throw error;
      lane.forbidden = 0;
      this.#warn('our home refuses a service of this peer', { id, error: errorText(error) });
      return { kind: 'refused', reason: homeRefusal(error as ApiError) };
    }
  }

  // Others write to the status, such as the address of a service: then our version of it is too old to be replaced.
  async #createOrUpdate(id: string, wanted: Extract<Wanted, { kind: 'present' }>, lane: Lane): Promise<PeerService> {
    const { client, namespace, peer } = this.#options;
    const metadata = { namespace, name: peerServiceName(peer, id) };
    const { resourceVersion = '' } = this.#stored.get(id) ?? {};
    // Only the version of the copy counts: the wanted state is written whatever we believe is stored.
    const copy = { metadata: { ...metadata, resourceVersion } } as PeerService;
    let isFirst = true;
    const { object } = await apply<PeerService>({
      ...{ client, type: peerServiceType, onConflict: 'retry' },
      present: resourceVersion === '' ? undefined : copy,
      change: (present) => {
        if (!isFirst) this.#found(id, present, lane);
        isFirst = false;
        const { firstSeenMs = this.#nextSeenMs() } = this.#stored.get(id) ?? {};
        const version = present?.metadata.resourceVersion ?? '';
        return objectOf({ namespace, spec: wanted.spec, hash: wanted.hash, firstSeenMs, resourceVersion: version });
      },
    });
    return object;
  }

  /** Takes the actual object after the home refused our version. */
  #found(id: string, present: PeerService | undefined, lane: Lane): void {
    const before = this.#stored.get(id);
    if (present === undefined) this.#vanished(id, lane);
    else if (before === undefined) this.#took(present);
    else this.#refresh(present, before);
  }

  async #delete(id: string): Promise<void> {
    const { client, namespace, peer } = this.#options;
    try {
      await client.delete(peerServiceType, { namespace, name: peerServiceName(peer, id) });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    this.#forget(id);
  }

  async #writeStatus(id: string, lane: Lane): Promise<void> {
    const patch = lane.status;
    const present = this.#stored.get(id);
    // Waits for a pending write of the same service.
    const isThere = present !== undefined && present.resourceVersion !== '';
    if (!isThere && lane.wanted !== undefined) return;
    lane.status = undefined;
    if (patch === undefined || !isThere || isApplied(patch, present.status)) return;
    const { client, namespace, peer } = this.#options;
    const ref = { namespace, name: peerServiceName(peer, id) };
    lane.sending = patch;
    try {
      const merge = { kind: 'merge' as const, body: { status: patch } };
      const object = await client.patch<PeerService>(peerServiceType, ref, merge, { subresource: 'status' });
      if (!isAsStored(object, present)) lane.isDoubtful = true;
      this.#refresh(object, present);
    } catch (error) {
      // Another client removed it: it is put back, and then gets this status.
      if (isNotFound(error)) lane.isDoubtful = true;
      lane.status = { ...patch, ...(lane.status as PeerServiceStatusPatch | undefined) };
      if (!isNotFound(error)) throw error;
    } finally {
      lane.sending = undefined;
    }
  }

  /** Somebody else may have written, removed or made it: what is there now decides what there is to mend. */
  async #look(id: string, lane: Lane): Promise<void> {
    const object = await this.#get(id);
    // Its owner has a newer form meanwhile: that is written, whatever is stored.
    if (lane.wanted !== undefined) return;
    lane.isDoubtful = false;
    const before = this.#stored.get(id);
    if (before === undefined) {
      if (object === undefined) return;
      lane.wanted = { kind: 'absent' };
    } else if (object === undefined) {
      lane.wanted = repairOf(before);
      this.#vanished(id, lane);
    } else if (isAsStored(object, before)) {
      return this.#took(object, { isAsWritten: true });
    } else {
      lane.wanted = repairOf(before);
      this.#refresh(object, before);
    }
    this.#warn('another writer changed a service of this peer, restoring it', { id });
  }

  #warn(text: string, fields: Record<string, unknown>): void {
    const more = this.#lines.take();
    if (more !== undefined) this.#options.log.warn(text, { ...fields, ...more });
  }

  #get(id: string): Promise<PeerService | undefined> {
    const { client, namespace, peer } = this.#options;
    return getOrUndefined<PeerService>(client, peerServiceType, { namespace, name: peerServiceName(peer, id) });
  }

  // It keeps its age, its names and its status.
  #vanished(id: string, lane: Lane): void {
    const before = this.#stored.get(id);
    if (before === undefined) return;
    lane.status = { ...statusToRestore(before.status), ...lane.status };
    this.#stored.set(id, before.vanished());
  }

  // Its spec stays as we wrote it last, whatever others changed.
  #refresh(object: PeerService, before: StoredService): void {
    this.#stored.set(before.id, before.refreshed(object));
  }

  #took(object: PeerService, { isAsWritten = false } = {}): void {
    const stored = storedFrom(object, { isAsWritten });
    this.#lastSeenMs = Math.max(this.#lastSeenMs, stored.firstSeenMs);
    this.#count(this.#stored.get(stored.id), -1);
    this.#count(stored, 1);
    this.#stored.set(stored.id, stored);
    this.#options.onStored?.(stored.id, stored);
  }

  #count(service: StoredService | undefined, step: 1 | -1): void {
    if (service?.isQuarantined) this.#quarantined += step;
    this.#bytes += step * (service?.bytes ?? 0);
  }

  #forget(id: string): void {
    this.#count(this.#stored.get(id), -1);
    if (this.#stored.delete(id)) this.#options.onStored?.(id, undefined);
  }

  #nextSeenMs(): number {
    this.#lastSeenMs = Math.max(this.#options.world.clock.wallMs(), this.#lastSeenMs + 1);
    return this.#lastSeenMs;
  }
}

function heldIn(
  stored: ReadonlyMap<string, StoredService>,
  lanes: ReadonlyMap<string, Lane>,
  bytes: () => number,
): HeldServices {
  const get = (id: string) => {
    const wanted = lanes.get(id)?.wanted;
    if (wanted?.kind === 'absent') return undefined;
    const service = stored.get(id);
    // Something newer is being written: what its owner sends now must come after it.
    return service !== undefined && wanted !== undefined ? { id: service.id, hash: '', bytes: service.bytes } : service;
  };
  return {
    get,
    get bytes() {
      return bytes();
    },
    get size() {
      let size = stored.size;
      for (const [id, { wanted }] of lanes) if (wanted?.kind === 'absent' && stored.has(id)) size -= 1;
      return size;
    },
    *ids() {
      for (const id of stored.keys()) if (get(id) !== undefined) yield id;
    },
  };
}
