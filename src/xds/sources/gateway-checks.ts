// Tries the gateways of clusters in other networks as a node's proxy would, with a certificate of this cluster, again and
// again: whether one of them can be used, and why not. One round at a time, a bounded number of tries together.

import { inParallel } from '../../base/in-parallel.ts';
import type { Metrics } from '../../base/metrics.ts';
import { formatHostPort } from '../../base/net/host-port.ts';
import type { MutualTlsTarget, ProbeMutualTls } from '../../base/real/prober-mutual-tls.ts';
import { sleep, type Timers } from '../../base/world.ts';

/** The ways to one cluster; no targets while there are none, and then why. */
export interface GatewayWay {
  readonly cluster: string;
  readonly targets: readonly MutualTlsTarget[];
}

export interface GatewayChecksOptions {
  readonly timers: Timers;
  readonly metrics: Metrics;
  readonly probe: ProbeMutualTls;
  readonly ways: () => readonly GatewayWay[];
  /** When a cluster became reached or unreached, or for another reason. */
  readonly onChange: () => void;
  readonly roundMs?: number;
}

const roundMsUsual = 5000;
const atOnceMax = 16;
export const gatewayProbeMs = 3000;

export class GatewayChecks {
  readonly #options: GatewayChecksOptions;
  readonly #stopping = new AbortController();
  #found = new Map<string, string>();
  #byGateway = new Map<string, { readonly cluster: string; readonly gateway: string; readonly why: string }>();

  constructor(options: GatewayChecksOptions) {
    this.#options = options;
    options.metrics.gauge({
      name: 'gateway_reachable',
      help: 'Whether a gateway of a cluster in another network takes connections of this cluster.',
      labelNames: ['remote', 'gateway'],
      collect: (gauge) => {
        gauge.reset();
        for (const { cluster, gateway, why } of this.#byGateway.values())
          gauge.set({ remote: cluster, gateway }, why === '' ? 1 : 0);
      },
    });
  }

  /** Why each cluster with gateways is not reached; empty if it is. */
  get found(): ReadonlyMap<string, string> {
    return this.#found;
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    const { timers, roundMs = roundMsUsual } = this.#options;
    while (!this.#stopping.signal.aborted) {
      await this.#round();
      await sleep(timers, roundMs, this.#stopping.signal).catch(() => {});
    }
  }

  async #round(): Promise<void> {
    const ways = this.#options.ways();
    const tries = ways.flatMap(({ cluster, targets }) => targets.map((target) => ({ cluster, target })));
    const byGateway = new Map<string, { cluster: string; gateway: string; why: string }>();
    await inParallel(tries, { atOnceMax }, async ({ cluster, target }) => {
      const why = await this.#options.probe(target);
      const gateway = formatHostPort(target.address, target.port);
      byGateway.set(`${cluster} ${gateway}`, { cluster, gateway, why });
    });
    if (this.#stopping.signal.aborted) return;
    this.#byGateway = byGateway;
    const found = new Map(ways.map(({ cluster, targets }) => [cluster, whyNot(cluster, targets, byGateway)]));
    const isSame = JSON.stringify([...found]) === JSON.stringify([...this.#found]);
    this.#found = found;
    if (!isSame) this.#options.onChange();
  }
}

/** One that answers is enough. */
function whyNot(
  cluster: string,
  targets: readonly MutualTlsTarget[],
  byGateway: ReadonlyMap<string, { readonly gateway: string; readonly why: string }>,
): string {
  const answers = targets.flatMap(
    ({ address, port }) => byGateway.get(`${cluster} ${formatHostPort(address, port)}`) ?? [],
  );
  if (answers.some(({ why }) => why === '')) return '';
  return answers.map(({ gateway, why }) => `gateway ${gateway}: ${why}`).join('; ');
}
