// One key per cluster: brings that cluster's resolver to what it should know of the federation, and says how it stands. A
// resolver gets a post when that changes, and again from time to time.

import { type HttpAccess, type HttpTransport, readBody } from '../../base/http.ts';
import { isSameJson } from '../../base/json.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import type { Client } from '../../kube/client/client.ts';
import type { InformerReader } from '../../kube/controller/informer.ts';
import { type Controller, runController } from '../../kube/controller/loop.ts';
import { Notes } from '../../kube/controller/notes.ts';
import type { Federation, FederationStatus } from '../kinds/federation.ts';
import { postedNotesName } from '../rules/broker-names.ts';
import { type ResolverEndpoint, resolverOf } from '../rules/poster.ts';
import { isMember, planStubZone, type StubZoneOrder } from './plan.ts';

type StubZoneState = NonNullable<FederationStatus['stubZones']>[number];

export interface StubZonesOptions {
  readonly world: World;
  readonly log: Log;
  readonly broker: Client;
  readonly clusterset: string;
  readonly federation: string;
  readonly federations: InformerReader<Federation>;
  readonly clusters: InformerReader<Cluster>;
  /** Client certificate for resolvers: PEM. */
  readonly identity: () => { readonly certificate: string; readonly key: string };
  readonly onState: () => void;
  /** If the authority's suffix differs from the Federation's. */
  readonly suffix?: string;
  /** A resolver that lost its memory gets its zones again this often. */
  readonly repeatMs?: number;
}

const defaultRepeatMs = 300_000;
const requestMs = 5000;
const errorTextMax = 500;

export class StubZonesController {
  readonly #options: StubZonesOptions;
  readonly #posted;
  readonly #states = new Map<string, StubZoneState>();
  /** The zone that each cluster's resolver accepted last, and when: a Federation's status changes with every service. */
  readonly #accepted = new Map<string, { readonly order: StubZoneOrder; readonly atMs: number }>();
  readonly #repeatMs;
  readonly #controller: Controller;

  constructor(options: StubZonesOptions) {
    this.#options = options;
    this.#posted = new Notes<ResolverEndpoint>(this.#options.broker, {
      namespace: this.#options.clusterset,
      name: postedNotesName(this.#options.federation),
    });
    this.#repeatMs = this.#options.repeatMs ?? defaultRepeatMs;
    this.#controller = runController({
      name: 'stub zones',
      world: this.#options.world,
      log: this.#options.log,
      concurrency: 8,
      sources: [
        { informer: this.#options.clusters, keysOf: (_key, next, previous) => [(next ?? previous)!.metadata.name] },
        {
          informer: this.#options.federations,
          keysOf: (key) =>
            key === `${this.#options.clusterset}/${this.#options.federation}` ? this.#everyCluster() : [],
        },
      ],
      reconcile: (cluster) => this.#reconcile(cluster),
    });
    // Members that left meanwhile.
    this.#posted.all().then(
      (all) => {
        for (const cluster of all.keys()) this.#controller.queue.add(cluster);
      },
      (error) => this.#options.log.warn('where stub zones were posted cannot be read', { error: errorText(error) }),
    );
  }

  states() {
    return [...this.#states.values()].sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
  }

  stop() {
    return this.#controller.stop();
  }

  #federation() {
    return this.#options.federations.get(`${this.#options.clusterset}/${this.#options.federation}`);
  }

  #clusterOf(id: string) {
    return this.#options.clusters.get(`${this.#options.clusterset}/${id}`);
  }

  #setState(cluster: string, state: StubZoneState | undefined): void {
    if (JSON.stringify(this.#states.get(cluster)) === JSON.stringify(state)) return;
    if (state) this.#states.set(cluster, state);
    else this.#states.delete(cluster);
    this.#options.onState();
  }

  async #reconcile(cluster: string) {
    const remembered = (await this.#posted.all()).get(cluster);
    const facts = { federation: this.#federation(), cluster: this.#clusterOf(cluster), posted: remembered };
    const orders = planStubZone({
      ...facts,
      ...(this.#options.suffix === undefined ? {} : { suffix: this.#options.suffix }),
    });
    if (orders.some(({ kind }) => kind !== 'nothing') && !this.#states.has(cluster))
      this.#setState(cluster, { cluster, state: 'Pending' });
    try {
      for (const order of orders) await this.#carryOut(cluster, order);
    } catch (error) {
      this.#setState(cluster, { cluster, state: 'Failed', message: errorText(error).slice(0, errorTextMax) });
      throw error;
    }
    const posting = orders.find((order) => order.kind === 'post');
    if (posting !== undefined) this.#setState(cluster, { cluster, state: 'Posted', endpoint: posting.to.endpoint });
    else if (isMember(this.#federation(), this.#clusterOf(cluster)))
      this.#setState(cluster, { cluster, state: 'Pending', message: this.#why(cluster) });
    else this.#setState(cluster, undefined);
    return posting === undefined
      ? undefined
      : { requeueAfterMs: this.#repeatMs - this.#sinceAcceptedMs(cluster, posting) };
  }

  #sinceAcceptedMs(cluster: string, order: StubZoneOrder): number {
    const last = this.#accepted.get(cluster);
    const isSame = last !== undefined && isSameJson(last.order, order);
    return isSame ? this.#options.world.clock.monotonicMs() - last.atMs : Number.POSITIVE_INFINITY;
  }

  #why(cluster: string): string {
    const hasServers = (this.#federation()?.spec?.nameservers ?? []).length > 0;
    return hasServers ? resolverOf(this.#clusterOf(cluster)).why : 'the federation names no nameservers';
  }

  async #carryOut(cluster: string, order: StubZoneOrder): Promise<void> {
    if (order.kind === 'nothing') return;
    if (order.kind === 'delete') {
      this.#accepted.delete(cluster);
      await this.#send(order.to, 'DELETE', undefined);
      await this.#posted.forget(cluster);
      return;
    }
    if (this.#sinceAcceptedMs(cluster, order) < this.#repeatMs) return;
    this.#accepted.delete(cluster);
    await this.#posted.remember(cluster, order.to);
    const { nameservers, suffix } = order;
    await this.#send(order.to, 'POST', { nameservers, suffix });
    this.#accepted.set(cluster, { order, atMs: this.#options.world.clock.monotonicMs() });
  }

  async #send(to: ResolverEndpoint, method: string, body: object | undefined): Promise<void> {
    const transport = this.#options.world.network.http(accessTo(to, this.#options.identity()));
    try {
      await request(this.#options.world, transport, { method, path: `/federations/${this.#options.federation}`, body });
    } catch (cause) {
      throw new Error(`${method} ${to.endpoint}/federations/${this.#options.federation}: ${errorText(cause)}`, {
        cause,
      });
    } finally {
      transport.close();
    }
  }

  #everyCluster() {
    return [...this.#options.clusters.values()].map(({ metadata }) => metadata.name);
  }
}

function accessTo(
  { endpoint, caBundle }: ResolverEndpoint,
  identity: ReturnType<StubZonesOptions['identity']>,
): HttpAccess {
  return {
    server: endpoint.replace(/\/$/, ''),
    ...(caBundle ? { certificateAuthority: Buffer.from(caBundle, 'base64').toString('utf8') } : {}),
    clientCertificate: identity.certificate,
    clientKey: identity.key,
  };
}

interface StubRequest {
  readonly method: string;
  readonly path: string;
  readonly body: object | undefined;
}

/** A zone that the resolver no longer has counts as removed. */
async function request(
  { timers }: World,
  transport: HttpTransport,
  { method, path, body }: StubRequest,
): Promise<void> {
  const ending = new AbortController();
  const timer = timers.after(requestMs, () => ending.abort(new Error(`no answer within ${requestMs} ms`)));
  try {
    const response = await transport.send({
      method,
      path,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
      signal: ending.signal,
    });
    const text = Buffer.from(await readBody(response.body))
      .toString('utf8')
      .trim();
    const isGone = method === 'DELETE' && response.status === 404;
    if (response.status !== 200 && !isGone) throw new Error(`status ${response.status}: ${text.slice(0, 200)}`);
  } finally {
    timer.cancel();
  }
}
