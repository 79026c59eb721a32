// Keeps the kernel's counters of connections, tells at each look what has come since the last one, and sums it by service and cluster for
// the services that are shifted.

import { errorText, type Log } from '../../base/log.ts';
import type { IpRange } from '../../base/net/ip.ts';
import type { Timer, World } from '../../base/world.ts';
import { countedServicesMax, noConnections } from '../../kube/objects/reports/connections.ts';
import type { ProxyState } from '../state.ts';
import { Tally } from '../tally.ts';
import {
  countsScript,
  type EndpointCounts,
  type KernelCounters,
  readCounters,
  removeCountsScript,
} from './counts-table.ts';

export interface KernelCountsOptions {
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  readonly state: Pick<ProxyState, 'counted' | 'choiceOf'>;
  readonly ranges: readonly IpRange[];
  readonly nft: {
    apply(script: string): Promise<void>;
    /** JSON of the table. */
    listCounts(): Promise<string>;
  };
  /** Told at each look what has come since the last one, by `ADDRESS ENDPOINT PORT`. */
  readonly onLook?: (since: KernelCounters) => void;
}

interface Owner {
  readonly service: string;
  readonly cluster: string;
}

const lookMs = 500;
/** Reading costs some 30 µs of CPU for each endpoint: it takes at most a seventh of a core, however many there are. */
const lookMsEach = 0.2;
/** Between a look and one that is asked for. */
const soonMs = 50;
/** Endpoints that have gone are known for a while: their last connections are counted too. */
const ownersMax = 50_000;

const noCounts: EndpointCounts = { ...noConnections, refused: 0 };

export class KernelCounts {
  readonly tally = new Tally();
  readonly #options: KernelCountsOptions;
  /** By address of the service, endpoint and port. */
  readonly #owners = new Map<string, Owner>();
  #ranges: readonly IpRange[];
  #last: KernelCounters = new Map();
  /** What is in the kernel. */
  #script = '';
  #problem = '';
  #timer: Timer | undefined;
  #isStopped = false;
  #running: Promise<void> | undefined;

  constructor(options: KernelCountsOptions) {
    this.#options = options;
    this.#ranges = options.ranges;
  }

  /** What an earlier process left is removed: counters begin at zero. Resolves when the kernel counts, or cannot. */
  async start(): Promise<void> {
    this.#run(async () => {
      await this.#options.nft.apply(removeCountsScript);
      await this.#look();
    });
    await this.#running;
  }

  setRanges(ranges: readonly IpRange[]): void {
    this.#ranges = ranges;
  }

  /** Not at the next regular look. */
  lookSoon(): void {
    if (this.#running === undefined && this.#timer !== undefined) this.#later(soonMs);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#running;
    if (this.#script !== '') await this.#options.nft.apply(removeCountsScript).catch((error) => this.#failed(error));
  }

  #later(delayMs: number): void {
    this.#timer?.cancel();
    if (!this.#isStopped) this.#timer = this.#options.world.timers.after(delayMs, () => this.#run(() => this.#look()));
  }

  #run(work: () => Promise<void>): void {
    this.#running = work()
      .catch((error: unknown) => this.#failed(error))
      .then(() => {
        this.#running = undefined;
        this.#later(Math.max(lookMs, this.#last.size * lookMsEach));
      });
  }

  async #look(): Promise<void> {
    const services = [...this.#options.state.counted()].sort().slice(0, countedServicesMax);
    this.tally.keep(new Set(services));
    this.#noteOwners(services);
    const script = countsScript(this.#ranges);
    if (script !== this.#script) {
      await this.#options.nft.apply(script);
      this.#script = script;
    }
    const since = this.#sinceLast(readCounters(await this.#options.nft.listCounts()));
    this.#count(since);
    this.#problem = '';
    this.#options.onLook?.(since);
  }

  /** Of TCP ports alone. Clusters that have had no connection yet are reported with none. */
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

  #sinceLast(now: KernelCounters): KernelCounters {
    const changes = new Map<string, EndpointCounts>();
    for (const [key, counts] of now) {
      const before = this.#last.get(key) ?? noCounts;
      const since = (column: keyof EndpointCounts) =>
        counts[column] < before[column] ? counts[column] : counts[column] - before[column];
      const [tried, answered] = [since('tried'), since('answered')];
      const [reset, refused] = [since('reset'), since('refused')];
      if (tried + answered + reset + refused > 0) changes.set(key, { tried, answered, reset, refused });
    }
    this.#last = now;
    return changes;
  }

  #count(since: KernelCounters): void {
    for (const [key, { tried, answered, reset }] of this.#owners.size === 0 ? [] : since) {
      const owner = this.#owners.get(key);
      if (owner !== undefined) this.tally.add(owner.service, owner.cluster, { tried, answered, reset });
    }
  }

  /** Once for each text. Without counters a shift waits and no endpoint is left: nothing is judged by what is not known. */
  #failed(error: unknown): void {
    // Somebody may have deleted it: it is written again.
    this.#script = '';
    const text = errorText(error);
    if (text === this.#problem) return;
    this.#problem = text;
    this.#options.log.warn('connections are not counted', { error: text });
  }
}
