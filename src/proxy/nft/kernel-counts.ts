// Counts connections in the kernel, tells at each look what has come since the last one, and sums it by service and cluster for the
// services that are shifted.

import type { IpRange } from '../../base/net/ip.ts';
import { countedServicesMax, noConnections } from '../../kube/objects/reports/connections.ts';
import type { ProxyState } from '../state.ts';
import { Tally } from '../tally.ts';
import { CounterTable, type CounterTableOptions } from './counter-table.ts';
import {
  countsScript,
  type EndpointCounts,
  type KernelCounters,
  readCounters,
  removeCountsScript,
} from './counts-table.ts';

export interface KernelCountsOptions
  extends Pick<CounterTableOptions<EndpointCounts>, 'world' | 'log' | 'ranges' | 'nft'> {
  readonly state: Pick<ProxyState, 'counted' | 'choiceOf'>;
  /** Told at each look what has come since the last one, by `ADDRESS ENDPOINT PORT`. */
  readonly onLook?: (since: KernelCounters) => void;
}

interface Owner {
  readonly service: string;
  readonly cluster: string;
}

const lookMs = 500;
/** Endpoints that have gone are known for a while: their last connections are counted too. */
const ownersMax = 50_000;

export class KernelCounts {
  readonly tally = new Tally();
  readonly #options: KernelCountsOptions;
  readonly #table: CounterTable<EndpointCounts>;
  /** By address of the service, endpoint and port. */
  readonly #owners = new Map<string, Owner>();

  constructor(options: KernelCountsOptions) {
    this.#options = options;
    this.#table = new CounterTable<EndpointCounts>({
      ...options,
      ...{ lookMs, problem: 'connections are not counted' },
      layout: { script: countsScript, removeScript: removeCountsScript, read: readCounters },
      beforeLook: () => this.#noteServices(),
      onLook: (since) => {
        this.#count(since);
        options.onLook?.(since);
      },
    });
  }

  /** Resolves when the kernel counts, or cannot. */
  start(): Promise<void> {
    return this.#table.start();
  }

  setRanges(ranges: readonly IpRange[]): void {
    this.#table.setRanges(ranges);
  }

  lookSoon(): void {
    this.#table.lookSoon();
  }

  stop(): Promise<void> {
    return this.#table.stop();
  }

  #noteServices(): void {
    const services = [...this.#options.state.counted()].sort().slice(0, countedServicesMax);
    this.tally.keep(new Set(services));
    this.#noteOwners(services);
  }

  /** Notes TCP ports alone. Clusters that have had no connection yet are reported with none. */
  #noteOwners(services: readonly string[]): void {
    if (this.#owners.size > ownersMax || services.length === 0) this.#owners.clear();
    for (const service of services)
      for (const { ip, protocol, backends } of this.#options.state.choiceOf(service).ports) {
        if (protocol !== 'TCP') continue;
        for (const { address, port, cluster } of backends) {
          this.tally.add(service, cluster, noConnections);
          const key = `${ip} ${address} ${port}`;
          const known = this.#owners.get(key);
          if (known?.service !== service || known.cluster !== cluster) this.#owners.set(key, { service, cluster });
        }
      }
  }

  #count(since: KernelCounters): void {
    for (const [key, { tried, answered, reset }] of this.#owners.size === 0 ? [] : since) {
      const owner = this.#owners.get(key);
      if (owner !== undefined) this.tally.add(owner.service, owner.cluster, { tried, answered, reset });
    }
  }
}
