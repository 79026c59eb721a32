// Writes what proxies refused as a condition on the object that caused it, and takes it back when it is over. Runs only
// while this process leads. The other processes report through their Lease.

import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import type { Client } from '../../kube/client/client.ts';
import { isConflict, isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime, type WantedCondition, withConditions } from '../../kube/objects/conditions.ts';
import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { serviceType } from '../../kube/objects/service.ts';
import { peerType } from '../../peering/kinds/peer.ts';
import { peerExportType } from '../../peering/kinds/peer-export.ts';
import { peerServiceType } from '../../peering/kinds/peer-service.ts';
import type { Cause } from '../resource.ts';
import { type Complaint, causeKey, conditionsOf, conditionType, inOrder } from './verdicts.ts';

export interface ConditionWriterOptions {
  readonly home: Client;
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly log: Log;
  readonly namespace: string;
  readonly complaints: () => Iterable<Complaint>;
}

interface WithStatus extends KubernetesObject {
  status?: { conditions?: Condition[] };
}

const everywhere: readonly ResourceType[] = [serviceImportType, serviceType, peerExportType];
const inSystem: readonly ResourceType[] = [peerType, peerServiceType, meshExternalServiceType];
const types: readonly ResourceType[] = [...everywhere, ...inSystem];
const soonMs = 100;
const againMs = 5000;

export class ConditionWriter {
  readonly #options: ConditionWriterOptions;
  /** The last written condition of each object with a complaint, by key. */
  readonly #written = new Map<string, { readonly cause: Cause; readonly text: string }>();
  #timer: Timer | undefined;
  #isWriting = false;
  #isStopped = false;

  constructor(options: ConditionWriterOptions) {
    this.#options = options;
  }

  /** Something may have to be written. */
  wake(delayMs = soonMs): void {
    if (this.#isStopped || this.#timer !== undefined) return;
    this.#timer = this.#options.world.timers.after(delayMs, () => {
      this.#timer = undefined;
      void this.#write();
    });
  }

  /** Takes over the conditions that a process wrote which led before: those without a complaint are taken back. */
  async adopt(): Promise<void> {
    try {
      for (const type of types) await this.#adoptType(type);
    } catch (error) {
      this.#options.log.warn('conditions of an earlier process were not read', { error: errorText(error) });
    }
    this.wake();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #adoptType(type: ResourceType): Promise<void> {
    const { home, namespace: system } = this.#options;
    const where = inSystem.includes(type) ? { namespace: system } : {};
    for await (const { items } of home.listPaged<WithStatus>(type, where)) {
      for (const { metadata, status } of items) {
        const isRefused = status?.conditions?.some((one) => one.type === conditionType && one.status === 'False');
        const cause: Cause = { at: 'home', kind: type.kind, namespace: metadata.namespace ?? '', name: metadata.name };
        const key = causeKey(cause);
        if (isRefused && !this.#written.has(key)) this.#written.set(key, { cause, text: '' });
      }
    }
  }

  async #write(): Promise<void> {
    if (this.#isWriting) return this.wake();
    this.#isWriting = true;
    let hasFailed = false;
    const wanted = conditionsOf(this.#options.complaints());
    const due = new Map<string, { readonly cause: Cause; readonly condition: WantedCondition }>(wanted);
    for (const [key, { cause }] of this.#written) if (!wanted.has(key)) due.set(key, { cause, condition: inOrder });
    for (const [key, { cause, condition }] of due) {
      const text = JSON.stringify(condition);
      if (this.#isStopped || this.#written.get(key)?.text === text) continue;
      try {
        await this.#put(cause, condition);
        if (condition === inOrder) this.#written.delete(key);
        else this.#written.set(key, { cause, text });
      } catch (error) {
        hasFailed = true;
        if (!isConflict(error))
          this.#options.log.warn('a condition was not written', { ...cause, error: errorText(error) });
      }
    }
    this.#isWriting = false;
    if (hasFailed) this.wake(againMs);
  }

  async #put(cause: Cause, condition: WantedCondition): Promise<void> {
    const { home, world } = this.#options;
    const type = types.find(({ kind }) => kind === cause.kind);
    // Members have no right to write objects on the broker.
    if (type === undefined || cause.at === 'broker') return;
    try {
      const { name, namespace } = cause;
      const present = await home.get<WithStatus>(type, { name, namespace });
      const stamp = { now: formatTime(world.clock.wallMs()), observedGeneration: present.metadata.generation };
      const conditions = withConditions(present.status?.conditions, [condition], stamp);
      if (conditions === present.status?.conditions) return;
      const body: WithStatus = { ...present, status: { ...present.status, conditions: [...conditions] } };
      await home.updateStatus<WithStatus>(type, body);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
