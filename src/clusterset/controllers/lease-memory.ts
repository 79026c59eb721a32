// Keeps what was judged of the other members in a ConfigMap of the home. Written only after a change; a failed write
// is repeated the next time, and is harmless until then.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { verdictsName } from '../membership/membership.ts';
import type { LeaseRecord } from '../rules/leases/lease-judge.ts';
import {
  formatLeaseMemory,
  type LeaseMemory,
  parseLeaseMemory,
  recallLease,
  rememberLease,
} from '../rules/leases/lease-memory.ts';

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

  constructor(options: VerdictMemoryOptions) {
    this.#options = options;
  }

  async recall(holdDownMsMax: number): Promise<Map<string, ReturnType<typeof recallLease>>> {
    const { home, world } = this.#options;
    const wallMs = world.clock.wallMs();
    const recalled = new Map<string, ReturnType<typeof recallLease>>();
    this.#present = await getOrUndefined<ConfigMap>(home, configMapType, this.#ref());
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
      await this.#write(Object.fromEntries([...next].map(([id, memory]) => [id, formatLeaseMemory(memory)])));
      this.#written = next;
    } catch (error) {
      log.warn('lease verdicts not remembered, trying again later', { error });
    }
  }

  async #write(data: Record<string, string>): Promise<void> {
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
