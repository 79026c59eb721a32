// Members that do nothing but live: their records lie at the broker, their heartbeats go on.

import { OwnLease } from '../../src/clusterset/controllers/own-lease.ts';
import { endpointShardType } from '../../src/clusterset/kinds/endpoint-shard.ts';
import { serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { memberNamespace } from '../../src/clusterset/rules/broker-layout.ts';
import type { ServiceKey } from '../../src/clusterset/rules/names.ts';
import type { EndpointSlice } from '../../src/kube/objects/endpoint-slice.ts';
import { addMembers, type Broker, clusterset, world } from '../growth/broker.ts';
import { serviceRecord, sliceRecord } from '../growth/records.ts';

const beatMs = 5_000;
const leaseMs = 20_000;
const inFlight = 64;

export interface Published {
  readonly id: string;
  readonly service: ServiceKey;
  /** Of each of its slices. */
  readonly addresses: readonly (readonly string[])[];
}

export class Members {
  readonly ids: readonly string[];
  readonly #broker: Broker;
  readonly #timer: NodeJS.Timeout;
  #change = 0;

  private constructor(broker: Broker, ids: readonly string[]) {
    this.ids = ids;
    this.#broker = broker;
    const leases = ids.map((id) => leaseOf(broker, id));
    const beat = () => {
      for (const lease of leases) lease.renew(undefined, {}).catch(() => {});
    };
    beat();
    this.#timer = setInterval(beat, beatMs);
  }

  static async add(broker: Broker, count: number): Promise<Members> {
    const ids = Array.from({ length: count }, (_, index) => `c${String(index + 1).padStart(3, '0')}`);
    await addMembers(broker, ids);
    return new Members(broker, ids);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async publish(all: readonly Published[]): Promise<void> {
    const left = all.values();
    const worker = async () => {
      for (const one of left) await this.#create(one);
    };
    await Promise.all(Array.from({ length: inFlight }, worker));
  }

  /** Changes the first endpoint of the first slice; the number of the change is its hostname. */
  async change({ id, service, addresses }: Published): Promise<number> {
    this.#change += 1;
    const change = this.#change;
    const record = sliceRecord({ ...this.#at(id, service), addresses: addresses[0]!, change, suffix: 'p0' });
    const { name, namespace } = record.metadata;
    const ref = { name, namespace: namespace! };
    const body = { endpoints: record.endpoints };
    await this.#broker.client.patch<EndpointSlice>(endpointShardType, ref, { kind: 'merge', body });
    return change;
  }

  async #create({ id, service, addresses }: Published): Promise<void> {
    const at = this.#at(id, service);
    for (const [part, some] of addresses.entries()) {
      const record = sliceRecord({ ...at, addresses: some, change: 0, suffix: `p${part}` });
      await this.#broker.client.create(endpointShardType, record);
    }
    const counts = { ready: addresses.flat().length, slices: addresses.length };
    await this.#broker.client.create(serviceShardType, serviceRecord(service, { ...at, ...counts }));
  }

  #at(id: string, service: ServiceKey) {
    return { service, namespace: memberNamespace(clusterset, id) };
  }
}

function leaseOf(broker: Broker, id: string): OwnLease {
  return new OwnLease({
    ...{ world, broker: broker.client, clusterId: id, namespace: memberNamespace(clusterset, id) },
    leaseMs: () => leaseMs,
    annotations: (present) => present?.metadata.annotations ?? {},
    isJudging: () => false,
  });
}
