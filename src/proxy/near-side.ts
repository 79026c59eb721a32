// Whether the Envoy of this node carries connections to clusters of other networks: asked again and again at its health
// endpoint, which answers for each cluster whether a gateway of it answers. Without a good answer the kernel sends nothing
// there. One question at a time for each cluster, a bounded number together.

import { readBody } from '../base/http.ts';
import { inParallel } from '../base/in-parallel.ts';
import { sleep, type World } from '../base/world.ts';
import { healthPath } from '../clusterset/rules/networks/listener-ports.ts';
import type { SetNetworks } from '../clusterset/rules/networks/networks.ts';
import type { NodeAddresses } from './node-addresses.ts';

/** The way from this node to other networks. */
export interface NearSideView {
  /** Addresses of this node, where its Envoy accepts connections. */
  readonly addresses: NodeAddresses;
  /** Why connections to a cluster are not carried, for each that was asked about. */
  readonly problems: ReadonlyMap<string, string | undefined>;
}

export interface NearSideOptions {
  readonly world: Pick<World, 'timers' | 'network'>;
  /** URL of the health endpoint. */
  readonly health: string;
  readonly networks: () => SetNetworks;
  readonly addresses: () => NodeAddresses;
  readonly onChange: (view: NearSideView) => void;
}

const roundMs = 300;
/** An Envoy on this node that needs longer is no way for new connections. */
const answerMs = 1000;
const atOnceMax = 16;
/** After so many questions without an answer in a row a cluster is left: an Envoy may be busy for a moment. */
const unansweredMax = 2;
/** The Envoy's own word. It has checked the gateways more than once: the cluster is left at once. */
const noGatewayAnswers = 'none of its gateways answers';

export class NearSide {
  readonly #options: NearSideOptions;
  readonly #stopping = new AbortController();
  readonly #bad = new Map<string, number>();
  #problems = new Map<string, string | undefined>();
  #told = '';
  #running: Promise<void> = Promise.resolve();

  constructor(options: NearSideOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** Clusters with gateways that connections are not carried to now. */
  unreached(): string[] {
    return [...this.#problems].flatMap(([cluster, problem]) => (problem === undefined ? [] : [cluster])).sort();
  }

  async #run(): Promise<void> {
    const transport = this.#options.world.network.http({ server: this.#options.health });
    try {
      while (!this.#stopping.signal.aborted) {
        await this.#round((path) => this.#ask(transport, path));
        await sleep(this.#options.world.timers, roundMs, this.#stopping.signal).catch(() => {});
      }
    } finally {
      transport.close();
    }
  }

  async #round(ask: (path: string) => Promise<string | undefined>): Promise<void> {
    const clusters = [...this.#options.networks().clusters]
      .filter(([, { listenerPort }]) => listenerPort !== undefined)
      .map(([id]) => id);
    const problems = new Map<string, string | undefined>();
    await inParallel(clusters, { atOnceMax }, async (id) => {
      problems.set(id, this.#judge(id, await ask(healthPath(id))));
    });
    if (this.#stopping.signal.aborted) return;
    for (const id of this.#bad.keys()) if (!problems.has(id)) this.#bad.delete(id);
    this.#problems = new Map(clusters.map((id) => [id, problems.get(id)]));
    const view = { addresses: this.#options.addresses(), problems: this.#problems };
    const text = JSON.stringify([view.addresses, [...view.problems]]);
    if (text === this.#told) return;
    this.#told = text;
    this.#options.onChange(view);
  }

  #judge(id: string, problem: string | undefined): string | undefined {
    if (problem === undefined) {
      this.#bad.delete(id);
      return undefined;
    }
    const bad = (this.#bad.get(id) ?? 0) + 1;
    this.#bad.set(id, bad);
    const wasGood = this.#problems.has(id) && this.#problems.get(id) === undefined;
    return wasGood && bad < unansweredMax && problem !== noGatewayAnswers ? undefined : problem;
  }

  async #ask(transport: ReturnType<World['network']['http']>, path: string): Promise<string | undefined> {
    const giveUp = new AbortController();
    const timer = this.#options.world.timers.after(answerMs, () => giveUp.abort());
    const signal = AbortSignal.any([giveUp.signal, this.#stopping.signal]);
    try {
      const { status, body } = await transport.send({ method: 'GET', path, headers: {}, signal });
      await readBody(body);
      if (status === 200) return undefined;
      return status === 503 ? noGatewayAnswers : 'the Envoy of this node has no way to it yet';
    } catch {
      return 'no Envoy of this node answers';
    } finally {
      timer.cancel();
    }
  }
}
