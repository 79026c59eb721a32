// Keeps what was judged of the other members in a ConfigMap of the home. Written only after a change; a failed write
// is repeated the next time, and is harmless until then.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { brokerNoteKey, verdictsName } from '../membership/membership.ts';
import {
  formatLeaseMemory,
  type LeaseMemory,
  parseLeaseMemory,
  recallLease,
  rememberLease,
} from '../rules/leases/lease-memory.ts';
import type { LeaseRecord } from '../rules/leases/lease-monitor.ts';

export interface VerdictMemoryOptions {
  readonly world: Pick<World, 'clock'>;
  readonly log: Log;
  readonly home: Client;
  readonly namespace: string;
}

export class VerdictMemory {
  readonly #options: VerdictMemoryOptions;
  #written = new Map<string, LeaseMemory>();
  /** As it was last read or written. */
  #present: ConfigMap | undefined;
  #brokerAwaySince: string | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: VerdictMemoryOptions) {
    this.#options = options;
  }

  async recall(holdDownMsMax: number): Promise<Map<string, ReturnType<typeof recallLease>>> {
    const { home, world } = this.#options;
    const wallMs = world.clock.wallMs();
    const recalled = new Map<string, ReturnType<typeof recallLease>>();
    this.#present = await getOrUndefined<ConfigMap>(home, configMapType, this.#ref());
    this.#brokerAwaySince = this.#present?.data?.[brokerNoteKey];
    for (const [id, text] of Object.entries(this.#present?.data ?? {})) {
      const memory = parseLeaseMemory(text);
      if (memory === undefined) continue;
      this.#written.set(id, memory);
      recalled.set(id, recallLease(memory, { wallMs, holdDownMsMax }));
    }
    return recalled;
  }

  /** Covers all present members; an undefined record leaves the previous one. */
  async remember(records: ReadonlyMap<string, LeaseRecord | undefined>): Promise<void> {
    const { log, world } = this.#options;
    const next = new Map<string, LeaseMemory>();
    for (const [id, record] of records) {
      const before = this.#written.get(id);
      const memory = record === undefined ? before : rememberLease(record, before, world.clock.wallMs());
      if (memory !== undefined) next.set(id, memory);
    }
    const isSame = next.size === this.#written.size && [...next].every(([id, one]) => this.#written.get(id) === one);
    if (isSame) return;
    try {
      await this.#write(next);
      this.#written = next;
    } catch (error) {
      log.warn('lease verdicts not remembered, trying again later', { error });
    }
  }

  /** Written at once, and with each later change. */
  async noteBroker(awaySinceMs: number | undefined): Promise<void> {
    const since = awaySinceMs === undefined ? undefined : formatTime(awaySinceMs);
    if (this.#brokerAwaySince === since) return;
    this.#brokerAwaySince = since;
    try {
      await this.#write(this.#written);
    } catch (error) {
      this.#options.log.warn('not written to the home: whether the broker answers', { error });
    }
  }

  /** One after the other: both kinds of change go into one object. */
  #write(memories: ReadonlyMap<string, LeaseMemory>): Promise<void> {
    const turn = this.#writing.then(() => this.#writeNow(memories));
    this.#writing = turn.catch(() => {});
    return turn;
  }

  async #writeNow(memories: ReadonlyMap<string, LeaseMemory>): Promise<void> {
    const data = Object.fromEntries([...memories].map(([id, memory]) => [id, formatLeaseMemory(memory)]));
    if (this.#brokerAwaySince !== undefined) data[brokerNoteKey] = this.#brokerAwaySince;
    const made: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: this.#ref(), data };
    const { object } = await apply<ConfigMap>({
      client: this.#options.home,
      type: configMapType,
      present: this.#present,
      change: replaceWith(made),
      onConflict: 'retry',
    });
    this.#present = object;
  }

  #ref(): { name: string; namespace: string } {
    return { name: verdictsName, namespace: this.#options.namespace };
  }
}
