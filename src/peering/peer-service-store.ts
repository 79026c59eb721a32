// What one peer shares with us, kept as PeerServices in the home. Many writes are in flight at once; those of one id keep
// their order, and of several that wait only the newest is made. A write that the home cannot take now is tried again
// until it can; one that it refuses for what is in it is told as refused.

import type { Log } from '../base/log.ts';
import { errorText } from '../base/log.ts';
import { createQueue, type Queue } from '../base/queue.ts';
import { isSameJson } from '../base/same-json.ts';
import type { World } from '../base/world.ts';
import { type ApiError, isAlreadyExists, isConflict, isForbidden, isNotFound } from '../client/api-error.ts';
import type { Client } from '../client/client.ts';
import {
  contentHashAnnotation,
  firstSeenAnnotation,
  type PeerService,
  type PeerServiceSpec,
  type PeerServiceStatus,
  peerLabel,
  peerServiceName,
  peerServiceType,
  sharedServiceIn,
  specHash,
  specHashAnnotation,
  specOf,
} from '../model/peer-service.ts';
import type { SharedService } from '../model/shared-service.ts';
import { isSameHash } from './messages.ts';
import { homeRefusal, isRefusedForGood } from './reason.ts';

export interface PeerServiceStoreOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly namespace: string;
  readonly peer: string;
  readonly writesMax?: number;
}

/** What is on disk of one service. */
export interface StoredService {
  readonly id: string;
  /** Of the content as it came; empty if it is not what its owner sent. */
  readonly hash: Uint8Array;
  /** When this cluster first heard of it. */
  readonly firstSeenMs: number;
  readonly name: string;
  readonly fqdn: string;
  /** Nothing good is known of it: it exists to say why it was refused. */
  readonly isQuarantined: boolean;
  readonly resourceVersion: string;
  readonly status: PeerServiceStatus;
}

export type PutResult = { readonly kind: 'stored' } | { readonly kind: 'refused'; readonly reason: string };

type Wanted =
  | { readonly kind: 'present'; readonly spec: PeerServiceSpec; readonly hash: Uint8Array }
  | { readonly kind: 'absent' };

interface Lane {
  wanted: Wanted | undefined;
  /** A merge patch of the status that was not sent yet. */
  status: PeerServiceStatusPatch | undefined;
  /** The one that is on its way. */
  sending: PeerServiceStatusPatch | undefined;
  /** Told when what was wanted at their time, or something newer, is on disk. */
  waiters: ((result: PutResult) => void)[];
  /** How often in a row the home said that we may not write it. */
  forbidden: number;
}

/** Null takes a field away. */
export type PeerServiceStatusPatch = { readonly [Field in keyof PeerServiceStatus]: PeerServiceStatus[Field] | null };

const noHash = new Uint8Array(0);
/** As many as an owner sends before it waits: the home commits together what comes together. */
const writesInFlight = 1024;
const attemptsMax = 4;
/** A home that is starting may forbid what it allows a moment later. */
const forbiddenMax = 4;
const retry = { firstMs: 100, delayMsMax: 30_000 };

export class PeerServiceStore {
  readonly #options: PeerServiceStoreOptions;
  readonly #stored = new Map<string, StoredService>();
  readonly #lanes = new Map<string, Lane>();
  readonly #queue: Queue;
  #lastSeenMs = 0;
  #quarantined = 0;
  /** Told of each service that came, changed or went (undefined), once it is on disk. */
  onStored: (id: string, stored: StoredService | undefined) => void = () => {};

  constructor(options: PeerServiceStoreOptions) {
    this.#options = options;
    this.#queue = createQueue({
      name: `peer-services`,
      world: options.world,
      concurrency: options.writesMax ?? writesInFlight,
      backoff: retry,
      work: async (id) => {
        await this.#work(id);
        return undefined;
      },
      onFailure: ({ key, error, retryMs }) =>
        options.log.warn('a peer service could not be stored yet', { id: key, retryMs, error: errorText(error) }),
    });
    this.#queue.start();
  }

  /** Reads what is on disk. What may no longer be held is not taken up, and is removed. */
  async load(isAllowed: (service: SharedService) => boolean): Promise<void> {
    const { client, namespace, peer } = this.#options;
    const seen = new Set<string>();
    const selection = { namespace, labelSelector: `${peerLabel}=${peer}` };
    for await (const page of client.listPaged<PeerService>(peerServiceType, selection)) {
      for (const object of page.items) {
        if (object.spec.peer !== peer || object.metadata.name !== peerServiceName(peer, object.spec.id)) continue;
        seen.add(object.spec.id);
        this.#took(object);
        const service = sharedServiceIn(object);
        if (service !== undefined && !isAllowed(service)) this.remove([object.spec.id]);
      }
    }
    for (const id of this.#stored.keys()) if (!seen.has(id)) this.#forget(id);
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

  /** What the owner need not send again. */
  held(): Map<string, Uint8Array> {
    const held = new Map<string, Uint8Array>();
    for (const { id, hash } of this.#stored.values()) {
      if (this.#lanes.get(id)?.wanted?.kind !== 'absent') held.set(id, hash);
    }
    return held;
  }

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

  /** Writes under way end; those that wait are not made, and nobody is told. */
  stop(): Promise<void> {
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
    if (lane === undefined)
      this.#lanes.set(
        id,
        (lane = { wanted: undefined, status: undefined, sending: undefined, waiters: [], forbidden: 0 }),
      );
    return lane;
  }

  async #work(id: string): Promise<void> {
    const lane = this.#lanes.get(id);
    if (lane === undefined) return;
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
    if (lane.wanted === undefined && lane.status === undefined && lane.waiters.length === 0) this.#lanes.delete(id);
  }

  async #write(id: string, wanted: Wanted, lane: Lane): Promise<PutResult> {
    if (wanted.kind === 'absent') {
      await this.#delete(id);
      return stored;
    }
    const before = this.#stored.get(id)?.hash ?? noHash;
    if (before.length > 0 && isSameHash(before, wanted.hash)) return stored;
    try {
      const object = await this.#createOrUpdate(id, wanted);
      this.#took(object, { isAsWritten: true });
      return stored;
    } catch (error) {
      if (isForbidden(error)) lane.forbidden += 1;
      if (!isRefusedForGood(error) && lane.forbidden < forbiddenMax) throw error;
      lane.forbidden = 0;
      this.#options.log.warn('our home refuses a service of this peer', { id, error: errorText(error) });
      return { kind: 'refused', reason: homeRefusal(error as ApiError) };
    }
  }

  // Others write to the status, such as the address of a service: then what we know of it is too old to be replaced.
  async #createOrUpdate(id: string, wanted: Extract<Wanted, { kind: 'present' }>): Promise<PeerService> {
    const { client } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const before = this.#stored.get(id);
      const object = this.#object(id, wanted, before);
      try {
        if (before === undefined) return await client.create(peerServiceType, object);
        return await client.update(peerServiceType, object);
      } catch (error) {
        const isOld = isAlreadyExists(error) || isConflict(error) || isNotFound(error);
        if (!isOld) throw error;
        await this.#look(id);
        if (attempt === attemptsMax) throw error;
      }
    }
  }

  #object(
    id: string,
    { spec, hash }: Extract<Wanted, { kind: 'present' }>,
    before: StoredService | undefined,
  ): PeerService {
    const { namespace, peer } = this.#options;
    return {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'PeerService',
      metadata: {
        name: peerServiceName(peer, id),
        namespace,
        ...(before === undefined ? {} : { resourceVersion: before.resourceVersion }),
        labels: { [peerLabel]: peer, 'app.kubernetes.io/managed-by': 'portolan' },
        annotations: {
          [contentHashAnnotation]: Buffer.from(hash).toString('base64'),
          [specHashAnnotation]: specHash(spec),
          [firstSeenAnnotation]: String(before?.firstSeenMs ?? this.#nextSeenMs()),
        },
      },
      spec,
    };
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
    // Of something that is only about to be written it waits for that.
    if (present === undefined && lane.wanted !== undefined) return;
    lane.status = undefined;
    if (patch === undefined || present === undefined || isApplied(patch, present.status)) return;
    const { client, namespace, peer } = this.#options;
    const ref = { namespace, name: peerServiceName(peer, id) };
    lane.sending = patch;
    try {
      const merge = { kind: 'merge' as const, body: { status: patch } };
      this.#took(await client.patch<PeerService>(peerServiceType, ref, merge, { subresource: 'status' }));
    } catch (error) {
      if (isNotFound(error)) return;
      lane.status = { ...patch, ...(lane.status as PeerServiceStatusPatch | undefined) };
      throw error;
    } finally {
      lane.sending = undefined;
    }
  }

  /** Somebody else wrote or removed it: what is there now decides what the next try does. */
  async #look(id: string): Promise<void> {
    const { client, namespace, peer } = this.#options;
    try {
      this.#took(await client.get<PeerService>(peerServiceType, { namespace, name: peerServiceName(peer, id) }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#forget(id);
    }
  }

  #took(object: PeerService, { isAsWritten = false } = {}): void {
    const { annotations = {}, resourceVersion = '' } = object.metadata;
    const isOurs = isAsWritten || annotations[specHashAnnotation] === specHash(object.spec);
    const firstSeenMs = Number(annotations[firstSeenAnnotation] ?? 0);
    this.#lastSeenMs = Math.max(this.#lastSeenMs, firstSeenMs);
    const stored: StoredService = {
      id: object.spec.id,
      hash: isOurs ? Buffer.from(annotations[contentHashAnnotation] ?? '', 'base64') : noHash,
      firstSeenMs,
      name: object.spec.name ?? '',
      fqdn: object.spec.fqdn ?? '',
      isQuarantined: object.spec.fqdn === undefined,
      resourceVersion,
      status: object.status ?? {},
    };
    this.#count(this.#stored.get(stored.id), -1);
    this.#count(stored, 1);
    this.#stored.set(stored.id, stored);
    this.onStored(stored.id, stored);
  }

  #count(service: StoredService | undefined, step: 1 | -1): void {
    if (service?.isQuarantined) this.#quarantined += step;
  }

  #forget(id: string): void {
    this.#count(this.#stored.get(id), -1);
    if (this.#stored.delete(id)) this.onStored(id, undefined);
  }

  #nextSeenMs(): number {
    this.#lastSeenMs = Math.max(this.#options.world.clock.wallMs(), this.#lastSeenMs + 1);
    return this.#lastSeenMs;
  }
}

const stored: PutResult = { kind: 'stored' };

function isApplied(patch: PeerServiceStatusPatch, status: PeerServiceStatus): boolean {
  return Object.entries(patch).every(([field, value]) => {
    const present = status[field as keyof PeerServiceStatus];
    return value === null ? present === undefined : isSameJson(present, value);
  });
}
