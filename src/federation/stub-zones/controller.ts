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

export interface StubZonesController {
  states(): StubZoneState[];
  stop(): Promise<void>;
}

const defaultRepeatMs = 300_000;
const requestMs = 5000;
const errorTextMax = 500;

export function runStubZones(options: StubZonesOptions): StubZonesController {
  const { world, broker, clusterset, federations, clusters, federation: name } = options;
  const posted = new Notes<ResolverEndpoint>(broker, { namespace: clusterset, name: postedNotesName(name) });
  const states = new Map<string, StubZoneState>();
  /** The zone that each cluster's resolver accepted last, and when: a Federation's status changes with every service. */
  const accepted = new Map<string, { readonly order: StubZoneOrder; readonly atMs: number }>();
  const repeatMs = options.repeatMs ?? defaultRepeatMs;
  const federation = () => federations.get(`${clusterset}/${name}`);
  const clusterOf = (id: string) => clusters.get(`${clusterset}/${id}`);

  function setState(cluster: string, state: StubZoneState | undefined): void {
    if (JSON.stringify(states.get(cluster)) === JSON.stringify(state)) return;
    if (state) states.set(cluster, state);
    else states.delete(cluster);
    options.onState();
  }

  async function reconcile(cluster: string) {
    const remembered = (await posted.all()).get(cluster);
    const facts = { federation: federation(), cluster: clusterOf(cluster), posted: remembered };
    const orders = planStubZone({ ...facts, ...(options.suffix === undefined ? {} : { suffix: options.suffix }) });
    if (orders.some(({ kind }) => kind !== 'nothing') && !states.has(cluster))
      setState(cluster, { cluster, state: 'Pending' });
    try {
      for (const order of orders) await carryOut(cluster, order);
    } catch (error) {
      setState(cluster, { cluster, state: 'Failed', message: errorText(error).slice(0, errorTextMax) });
      throw error;
    }
    const posting = orders.find((order) => order.kind === 'post');
    if (posting !== undefined) setState(cluster, { cluster, state: 'Posted', endpoint: posting.to.endpoint });
    else if (isMember(federation(), clusterOf(cluster)))
      setState(cluster, { cluster, state: 'Pending', message: why(cluster) });
    else setState(cluster, undefined);
    return posting === undefined ? undefined : { requeueAfterMs: repeatMs - sinceAcceptedMs(cluster, posting) };
  }

  function sinceAcceptedMs(cluster: string, order: StubZoneOrder): number {
    const last = accepted.get(cluster);
    const isSame = last !== undefined && isSameJson(last.order, order);
    return isSame ? world.clock.monotonicMs() - last.atMs : Number.POSITIVE_INFINITY;
  }

  function why(cluster: string): string {
    const hasServers = (federation()?.spec?.nameservers ?? []).length > 0;
    return hasServers ? resolverOf(clusterOf(cluster)).why : 'the federation names no nameservers';
  }

  async function carryOut(cluster: string, order: StubZoneOrder): Promise<void> {
    if (order.kind === 'nothing') return;
    if (order.kind === 'delete') {
      accepted.delete(cluster);
      await send(order.to, 'DELETE', undefined);
      await posted.forget(cluster);
      return;
    }
    if (sinceAcceptedMs(cluster, order) < repeatMs) return;
    accepted.delete(cluster);
    await posted.remember(cluster, order.to);
    const { nameservers, suffix } = order;
    await send(order.to, 'POST', { nameservers, suffix });
    accepted.set(cluster, { order, atMs: world.clock.monotonicMs() });
  }

  async function send(to: ResolverEndpoint, method: string, body: object | undefined): Promise<void> {
    const transport = world.network.http(accessTo(to, options.identity()));
    try {
      await request(world, transport, { method, path: `/federations/${name}`, body });
    } catch (cause) {
      throw new Error(`${method} ${to.endpoint}/federations/${name}: ${errorText(cause)}`, { cause });
    } finally {
      transport.close();
    }
  }

  const everyCluster = () => [...clusters.values()].map(({ metadata }) => metadata.name);
  const controller: Controller = runController({
    name: 'stub zones',
    world,
    log: options.log,
    concurrency: 8,
    sources: [
      { informer: clusters, keysOf: (_key, next, previous) => [(next ?? previous)!.metadata.name] },
      { informer: federations, keysOf: (key) => (key === `${clusterset}/${name}` ? everyCluster() : []) },
    ],
    reconcile,
  });
  // Members that left meanwhile.
  posted.all().then(
    (all) => {
      for (const cluster of all.keys()) controller.queue.add(cluster);
    },
    (error) => options.log.warn('where stub zones were posted cannot be read', { error: errorText(error) }),
  );
  return {
    states: () => [...states.values()].sort((a, b) => (a.cluster < b.cluster ? -1 : 1)),
    stop: () => controller.stop(),
  };
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
