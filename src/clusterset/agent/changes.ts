// Some changes concern many services: the set's policy, a member, whether a member lives. This decides which objects are then checked again.

import { summaryKey } from '../controllers/inventory/profiles.ts';
import { viewKey } from '../controllers/merged-view.ts';
import type { Heartbeat } from '../kinds/heartbeat.ts';
import type { Member } from '../members/follower.ts';
import { homeAwayOf } from '../rules/leases/home-away.ts';
import { placementsAnnotation } from '../rules/placement.ts';
import { type AgentCopies, recordKeys } from './agent-copies.ts';
import type { AgentSealing } from './agent-sealing.ts';
import type { ControllerName, ControllerQueues } from './controller-queues.ts';

export interface SharedChangesOptions {
  readonly clusterId: string;
  readonly queues: ControllerQueues;
  readonly copies: AgentCopies;
  readonly sealing: Pick<AgentSealing, 'look' | 'clusterChanged'> | undefined;
  /** The options that data planes read may have changed. */
  readonly onOptions: () => void;
  readonly onLeaseTimes: () => void;
  readonly signal: AbortSignal;
}

/** Their work depends on which shards count. */
const merging: readonly ControllerName[] = ['import', 'conditions', 'merged-view'];
const all: readonly ControllerName[] = [...merging, 'export', 'legacy'];

export class SharedChanges {
  readonly #options: SharedChangesOptions;

  constructor(options: SharedChangesOptions) {
    this.#options = options;
    const { queues, copies } = options;
    const { profiles } = copies;
    profiles.on((_key, next, previous) => queues.add(['inventory'], [(next ?? previous)!.metadata.name]));
    profiles.onReturn(() => this.#inventoryChanged());
  }

  start(): void {
    const { policy, members } = this.#options.copies;
    policy.onChange(() => this.#policyChanged());
    members.on({
      changed: (id, member) => this.#memberChanged(id, member),
      heartbeat: (id, next, previous) => this.#heartbeatChanged(id, next, previous),
    });
  }

  /** A member is taken for dead, or for alive again. */
  verdictChanged(id: string): void {
    const { queues, copies } = this.#options;
    queues.add(merging, copies.memberServices.exportedBy(id));
    queues.add(['import-policy-status'], copies.importPolicies.keys());
    // The living members determine the writer of each view.
    this.#viewsChanged();
    this.#placementsChanged();
    this.#inventoryChanged(id);
  }

  #policyChanged(): void {
    const { queues, copies, sealing, onOptions, onLeaseTimes } = this.#options;
    copies.networks.changed();
    sealing?.look();
    onOptions();
    onLeaseTimes();
    copies.legacy.follow(copies.policy.current.legacyNamespace);
    queues.add(all, copies.services());
    this.#placementsChanged();
    this.#inventoryChanged();
  }

  /** A member that comes or goes, or whose ranges change, concerns the services it has; we ourselves all of them. */
  #memberChanged(id: string, member: Member | undefined): void {
    const { clusterId, queues, copies, sealing, onOptions } = this.#options;
    copies.networks.changed();
    sealing?.clusterChanged(id, member);
    onOptions();
    if (id === clusterId) return this.#policyChanged();
    queues.add(merging, copies.memberServices.exportedBy(id));
    this.#placementsChanged();
    // Views without exports may have been for this one to clear away.
    if (member === undefined) this.#viewsChanged();
    if (copies.policy.current.legacyNamespace !== undefined) queues.add(['legacy'], copies.atHome.exports.keys());
  }

  #heartbeatChanged(id: string, next: Heartbeat | undefined, previous: Heartbeat | undefined): void {
    if (next === undefined || previous === undefined || homeAwayOf(next)?.since !== homeAwayOf(previous)?.since)
      this.#inventoryChanged(id);
    const [now, before] = [next, previous].map((one) => one?.metadata.annotations?.[placementsAnnotation]);
    if (now !== before) this.#placementsChanged();
  }

  #viewsChanged(): void {
    const { queues, copies } = this.#options;
    queues.add(['merged-view'], Array.from(copies.views.values(), viewKey));
  }

  #placementsChanged(): void {
    this.#options.queues.add(['placement-status'], recordKeys(this.#options.copies.federated));
  }

  /** Everything if the change may be of the member that writes. Where this one never does, profiles are not read. */
  #inventoryChanged(changed?: string): void {
    const { clusterId, queues, copies, signal } = this.#options;
    const { profiles, members } = copies;
    const writers = copies.policy.current.inventoryWriters;
    if (!writers.includes(clusterId)) return profiles.close();
    if (!profiles.isOpen) {
      profiles.open();
      void profiles.whenSynced(signal).then(
        () => this.#inventoryChanged(),
        () => {},
      );
    }
    const isOne = changed !== undefined && !writers.includes(changed);
    queues.add(['inventory'], isOne ? [changed] : [...members.all().map(({ id }) => id), summaryKey]);
  }
}
