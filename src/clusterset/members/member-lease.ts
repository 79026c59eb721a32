// The lease of one member as this process sees it: in the layout of all namespaces the Heartbeat, or the Lease of an older
// agent if that is newer; in the layout per member the Lease alone.

import type { InformerHandler } from '../../kube/controller/informer.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import type { Heartbeat } from '../kinds/heartbeat.ts';
import { memberLeaseName } from '../rules/broker-layout.ts';
import { newerLease } from '../rules/leases/newer-lease.ts';
import type { OptionalCopy, RecordCopy } from './record-copy.ts';

export interface HeartbeatSource {
  /** Heartbeats of this member. */
  readonly beats: RecordCopy<Heartbeat>;
  /** Whether this process watches heartbeats now. */
  readonly isWatched: () => boolean;
  /** Whether the member has records of an agent that knows no heartbeats. */
  readonly isOlder: () => boolean;
}

export class MemberLease {
  readonly #key: string;
  readonly #leases: OptionalCopy<Lease>;
  readonly #handlers = new Set<(next: Lease | undefined, previous: Lease | undefined) => void>();
  #heartbeats: HeartbeatSource | undefined;

  constructor(namespace: string, leases: OptionalCopy<Lease>) {
    this.#key = `${namespace}/${memberLeaseName}`;
    this.#leases = leases;
    leases.on((key, next, previous) => {
      const heartbeat = this.#heartbeats?.beats.get(this.#key);
      if (key === this.#key && (heartbeat === undefined || newerLease(heartbeat, next) === next))
        this.#tell(next, previous);
    });
  }

  /** Reads heartbeats from now on, or with undefined the Lease. */
  follow(heartbeats: HeartbeatSource | undefined): void {
    this.#heartbeats?.beats.stop();
    this.#heartbeats = heartbeats;
    const onBeat: InformerHandler<Heartbeat> = (key, next, previous) => {
      if (key !== this.#key) return;
      this.review();
      this.#tell(next, previous);
    };
    heartbeats?.beats.on(onBeat);
    this.review();
  }

  /** To be called when a record of the member has changed and when heartbeats begin or cease to be watched. */
  review(): void {
    const heartbeats = this.#heartbeats;
    if (heartbeats === undefined) return this.#leases.need(true);
    const isKnown = heartbeats.isWatched() && heartbeats.beats.hasSynced;
    this.#leases.need(isKnown && heartbeats.isOlder());
  }

  current(): Lease | undefined {
    return newerLease(this.#heartbeats?.beats.get(this.#key), this.#leases.get(this.#key));
  }

  /** True also while nobody here watches leases: nothing will come then. */
  get hasSynced(): boolean {
    const isWaiting = this.#heartbeats?.isWatched() === true && !this.#heartbeats.beats.hasSynced;
    return !isWaiting && this.#leases.hasSynced;
  }

  async whenSynced(): Promise<void> {
    if (this.#heartbeats?.isWatched() === true) await this.#heartbeats.beats.whenSynced();
    this.review();
    await this.#leases.whenSynced();
  }

  on(handler: (next: Lease | undefined, previous: Lease | undefined) => void): void {
    this.#handlers.add(handler);
  }

  start(): void {
    this.#leases.start();
    this.review();
  }

  stop(): void {
    this.#heartbeats?.beats.stop();
    this.#leases.stop();
  }

  relist(): void {
    this.#leases.relist();
  }

  #tell(next: Lease | undefined, previous: Lease | undefined): void {
    for (const handler of this.#handlers) handler(next, previous);
  }
}
