// Keeps the kernel's counters for the services whose connections are counted, and sums what they show by service and cluster. The table
// is there only while something is counted.

import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { type ConnectionCounts, countedServicesMax, noConnections } from '../../kube/objects/reports/connections.ts';
import type { ProxyState } from '../state.ts';
import { Tally } from '../tally.ts';
import { countsScript, type KernelCounters, readCounters, removeCountsScript } from './counts-table.ts';

export interface KernelCountsOptions {
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  readonly state: Pick<ProxyState, 'counted' | 'choiceOf'>;
  readonly nft: {
    apply(script: string): Promise<void>;
    /** JSON of the table. */
    listCounts(): Promise<string>;
  };
}

interface Owner {
  readonly service: string;
  readonly cluster: string;
}

const lookMs = 2_000;
/** Endpoints that have gone are known for a while: their last connections are counted too. */
const ownersMax = 50_000;

export class KernelCounts {
  readonly tally = new Tally();
  readonly #options: KernelCountsOptions;
  /** By address of the service, endpoint and port. */
  readonly #owners = new Map<string, Owner>();
  #last: KernelCounters = new Map();
  /** What is in the kernel. */
  #script = '';
  #problem = '';
  #timer: Timer | undefined;
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: KernelCountsOptions) {
    this.#options = options;
  }

  /** What an earlier process left is removed: counters begin at zero. */
  start(): void {
    this.#running = this.#apply(removeCountsScript).then(() => this.#later());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#running;
    if (this.#script !== '') await this.#apply(removeCountsScript);
  }

  #later(): void {
    if (this.#isStopped) return;
    this.#timer = this.#options.world.timers.after(lookMs, () => {
      this.#running = this.#look()
        .catch((error: unknown) => this.#failed(error))
        .then(() => this.#later());
    });
  }

  async #look(): Promise<void> {
    const services = [...this.#options.state.counted()].sort().slice(0, countedServicesMax);
    this.tally.keep(new Set(services));
    if (services.length === 0 && this.#script === '') return;
    const script = services.length === 0 ? '' : countsScript(this.#addresses(services));
    if (script !== this.#script) {
      await this.#options.nft.apply(script === '' ? removeCountsScript : script);
      this.#script = script;
    }
    if (script === '') return this.#forget();
    this.#count(readCounters(await this.#options.nft.listCounts()));
    this.#problem = '';
  }

  #forget(): void {
    this.#owners.clear();
    this.#last = new Map();
  }

  /** Of TCP ports alone. Clusters that have had no connection yet are reported with none. */
  #addresses(services: readonly string[]): string[] {
    if (this.#owners.size > ownersMax) this.#owners.clear();
    const addresses = new Set<string>();
    for (const service of services)
      for (const { ip, protocol, backends } of this.#options.state.choiceOf(service).ports) {
        if (protocol !== 'TCP') continue;
        addresses.add(ip);
        for (const { address, port, cluster } of backends) {
          this.tally.add(service, cluster, noConnections);
          const key = `${ip} ${address} ${port}`;
          const known = this.#owners.get(key);
          if (known?.service !== service || known.cluster !== cluster) this.#owners.set(key, { service, cluster });
        }
      }
    return [...addresses].sort();
  }

  #count(now: KernelCounters): void {
    for (const [key, counts] of now) {
      const owner = this.#owners.get(key);
      if (owner === undefined) continue;
      const before = this.#last.get(key) ?? noConnections;
      const since = (column: keyof ConnectionCounts) =>
        counts[column] < before[column] ? counts[column] : counts[column] - before[column];
      const news = { tried: since('tried'), answered: since('answered'), reset: since('reset') };
      this.tally.add(owner.service, owner.cluster, news);
    }
    this.#last = now;
  }

  async #apply(script: string): Promise<void> {
    await this.#options.nft.apply(script).catch((error: unknown) => this.#failed(error));
  }

  /** Once for each text. Without counters a shift waits: nothing is judged by what is not known. */
  #failed(error: unknown): void {
    const text = errorText(error);
    if (text === this.#problem) return;
    this.#problem = text;
    this.#options.log.warn('connections are not counted', { error: text });
  }
}
