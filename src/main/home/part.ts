// The parts of an embedded home: store, keys, who may do what, the API server, its HTTPS edge, and the controllers that a
// Kubernetes would bring along.

import { existsSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { basename, resolve } from 'node:path';
import { formatServers, type HttpTransport } from '../../base/http.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { formatHostPort, type HostPort } from '../../base/net/host-port.ts';
import { formatIp, type IpRange, parseIp, parseRange } from '../../base/net/ip.ts';
import { Parts } from '../../base/parts.ts';
import { createRealProber } from '../../base/real/prober.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import { Turns } from '../../base/turns.ts';
import type { Timer, World } from '../../base/world.ts';
import { runEndpointsController } from '../../endpoints/controller.ts';
import { RegistrationController } from '../../endpoints/registration-controller.ts';
import { watchAllAuthorities } from '../../federation/authority-watch.ts';
import { type Api, createApi } from '../../home/api.ts';
import { bundledDefinitions } from '../../home/definitions/bundled.ts';
import { type ApiServer, serve } from '../../home/edge/server.ts';
import { customResourceDefinitionKind } from '../../home/kinds/custom-resource-definition.ts';
import { builtinKinds, securityKinds } from '../../home/kinds/index.ts';
import { registryRoot } from '../../home/model/kind.ts';
import { openSqliteStore } from '../../home/open-store.ts';
import { watchAuthority } from '../../home/security/authority-end.ts';
import { ensureBootstrap } from '../../home/security/bootstrap.ts';
import { createAccess } from '../../home/security/create-access.ts';
import { openAuditLog } from '../../home/security/edge/audit-log.ts';
import { closeToOthers } from '../../home/security/edge/owner-only.ts';
import { openPki, servingHosts } from '../../home/security/pki.ts';
import { finishRestore, refuseDuringRestore } from '../../home/snapshot/edge/restored-folder.ts';
import { Snapshots } from '../../home/snapshot/snapshots.ts';
import type { LogStore } from '../../home/store/log-store.ts';
import { createClient } from '../../kube/client/client.ts';
import { defaultServiceRanges } from '../../kube/objects/service.ts';
import { type EtcdOptions, openEtcdHome } from './etcd-store.ts';
import { type Forwarder, forwardConnections, isRefusedAt } from './forward.ts';
import { kindRules } from './kind-rules.ts';
import { movedFrom } from './moved.ts';
import { ensureTicketAccounts } from './ticket-accounts.ts';

export interface HomeOptions {
  readonly world: World;
  readonly log: Log;
  readonly directory: string;
  readonly listen: { readonly host: string; readonly port: number };
  /** In its kubeconfig; if absent the one used before, else that of its folder. */
  readonly name?: string;
  /** How others reach it: in its kubeconfig and in join tokens. Its own port if the port is 0. */
  readonly advertise?: { readonly host: string; readonly port: number };
  /** Further names and addresses that the serving certificate is good for. */
  readonly extraHosts?: readonly string[];
  /** CIDRs of cluster IPs, the preferred family first. */
  readonly serviceRanges?: readonly string[];
  readonly historyMs?: number;
  readonly audit?: { readonly path: string; readonly isRequired: boolean };
  /** Other machines whose parts may be asked through it. */
  readonly partRanges?: readonly IpRange[];
  /** Folder of scheduled snapshots; `snapshots` in the home's own if absent, and none are taken if it is `none`. */
  readonly snapshots?: string | undefined;
  /** The secret that scheduled snapshots are encrypted with. */
  readonly snapshotKey?: string | undefined;
  /** Where other processes of this home are reached, which take over from this one. */
  readonly replicas?: readonly HostPort[] | undefined;
  /** Where the objects are, if not in the folder. */
  readonly etcd?: EtcdOptions | undefined;
  /** Gives up waiting for another process to end. */
  readonly signal?: AbortSignal | undefined;
  /** The store cannot be used any more: another process has taken over, or etcd is not what it was. */
  readonly onStoreLost?: ((error: Error) => void) | undefined;
}

export interface Home {
  /** `https://host:port` */
  readonly server: string;
  readonly kubeconfig: string;
  /** PEM; what clients trust it by. */
  readonly certificateAuthority: string;
  /** Requests of this process itself, which need no socket and may do anything. */
  readonly transport: HttpTransport;
  stop(): Promise<void>;
}

export async function startHome(options: HomeOptions): Promise<Home> {
  const parts = new Parts(options.log);
  try {
    return await startParts(options, parts);
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

async function startParts(options: HomeOptions, parts: Parts): Promise<Home> {
  const { world, log, directory, listen } = options;
  closeToOthers(directory, log);
  const metrics = createPartMetrics('home');
  const { store, keepKeys } = await openStore(options, { metrics, parts });
  const advertised = options.advertise === undefined ? [] : [options.advertise.host];
  const { replicas = [] } = options;
  const ofReplicas = replicas.map(({ host }) => host);
  const extra = [...advertised, ...ofReplicas, ...apiNames, apiClusterIp(options), ...(options.extraHosts ?? [])];
  const hosts = servingHosts({ host: listen.host, hostname: hostname(), extra });
  const names = { name: options.name, defaultName: homeNameOf(directory) };
  const pki = await openPki({ world, directory, hosts, ...names, log, authorityLookMs: 3_000 });
  parts.add('pki', () => pki.close());
  await keepKeys();
  pki.onRenewed(() => void keepKeys().catch((error) => log.error('etcd has older keys', { error: errorText(error) })));
  const access = await createAccess({ world, store, log, serviceAccountKey: pki.serviceAccountKey });
  parts.add('access', () => access.close());
  const kinds = builtinKinds({
    serviceRanges: options.serviceRanges ?? defaultServiceRanges,
    random: world.random,
    extra: [customResourceDefinitionKind, ...securityKinds(access)],
  });
  const snapshots = createSnapshots(options, store);
  const authority = watchAuthority({ pki, world, log, metrics });
  parts.add('authority', () => authority.stop());
  const audit = options.audit && openAuditLog({ ...options.audit, log, metrics, timers: world.timers });
  if (audit !== undefined) parts.add('audit log', () => audit.close());
  const api = await createApi({
    world,
    authority,
    audit,
    snapshots,
    store,
    kinds,
    access,
    log,
    metrics,
    definitions: bundledDefinitions(),
    kindRules,
    partRanges: options.partRanges,
  });
  await api.start();
  parts.add('api', () => api.stop());
  await ensureBootstrap({ handle: (request) => api.handle({ ...request, clientCertificate: self }) });
  const edge = await serve({ api, pki, listen, world, log, metrics, audit });
  parts.add('edge', () => edge.close());
  if (options.etcd !== undefined) parts.add('end of stale watches', endStaleWatches(world, store, edge));
  await api.announce({ ...ownAddress(edge, options), clusterIp: apiClusterIp(options) });
  const server = addressOf(edge, options);
  const otherServers = replicas.map(({ host, port }) => `https://${formatHostPort(host, port)}`);
  const kubeconfig = await pki.adminKubeconfig({ server: formatServers({ server, otherServers }) });
  await snapshots.start();
  parts.add('snapshots', () => snapshots.stop());
  const transport = localTransport(api);
  await ensureTicketAccounts(createClient(transport, { world, userAgent: 'portolan-home' }));
  startControllers(options, { transport, metrics, parts });
  return { server, kubeconfig, certificateAuthority: pki.clientCa, transport, stop: () => parts.stop() };
}

interface HomeStore {
  readonly store: LogStore;
  keepKeys(): Promise<void>;
}

async function openStore(
  options: HomeOptions,
  { metrics, parts }: { readonly metrics: Metrics; readonly parts: Parts },
): Promise<HomeStore> {
  const { world, log, directory, historyMs, etcd } = options;
  if (etcd !== undefined) return openInEtcd({ ...options, etcd }, { metrics, parts });
  const moved = movedFrom(directory);
  if (moved !== undefined) throw new Error(moved);
  refuseDuringRestore(directory);
  if (finishRestore(directory)) log.warn('went on with a restore that was interrupted');
  const path = `${directory}/store/facts.db`;
  const limits = historyMs === undefined ? {} : { historyMs };
  const store = await openSqliteStore({ world, log, path, jsonBelow: registryRoot, limits, metrics });
  parts.add('store', () => store.close());
  return { store, keepKeys: async () => {} };
}

/** Until this process may write, it passes connections on to the one that does. */
async function openInEtcd(
  options: HomeOptions & { readonly etcd: EtcdOptions },
  { metrics, parts }: { readonly metrics: Metrics; readonly parts: Parts },
): Promise<HomeStore> {
  const { world, log, directory, historyMs, etcd, listen, advertise, signal } = options;
  if (existsSync(`${directory}/store/facts.db`) && movedFrom(directory) === undefined)
    throw new Error(`${directory}/store holds a home already; bring it to etcd with portolan api migrate --to etcd`);
  const address = formatHostPort(advertise?.host ?? listen.host, advertise?.port || listen.port);
  let forwarder: Forwarder | undefined;
  const onWaiting = (holder: string) => {
    log.info('another process serves this home; waiting, and passing connections on to it', { holder });
    forwarder ??= forwardConnections(listen, log);
    forwarder.to(holder === address ? undefined : holder);
  };
  // At our own address nobody else serves, unless it is that of a balancer.
  const isGone = async (holder: string) => holder === address || isRefusedAt(holder);
  const waiting = { address, onWaiting, isGone, signal };
  try {
    const home = await openEtcdHome({ world, log, directory, etcd, historyMs, metrics, ...waiting });
    parts.add('store', () => home.close());
    home.store.onBroken = (error) => options.onStoreLost?.(error);
    return home;
  } finally {
    await forwarder?.close();
  }
}

const staleLookMs = 500;

/** While nobody knows whether another process has taken over, an open watch could show less than there is. */
function endStaleWatches({ timers }: World, store: LogStore, edge: ApiServer): () => Promise<void> {
  let wasStale = false;
  let timer: Timer;
  const look = () => {
    const isStale = store.readFailure() !== undefined;
    if (isStale && !wasStale) edge.endWatches();
    wasStale = isStale;
    timer = timers.after(staleLookMs, look);
  };
  look();
  return async () => timer.cancel();
}

function createSnapshots(
  { world, log, directory, name, snapshots, snapshotKey }: HomeOptions,
  store: LogStore,
): Snapshots {
  const storeBytes = () => {
    const { liveBytes, diskBytes } = store.stats();
    return Math.max(liveBytes, diskBytes);
  };
  return new Snapshots({
    ...{ world, log, store, storeBytes, turns: new Turns(world), directory, secret: snapshotKey },
    homeName: name ?? homeNameOf(directory),
    folder: snapshots === 'none' ? undefined : (snapshots ?? `${directory}/snapshots`),
  });
}

/**
 * Controllers that a Kubernetes would include: EndpointSlices from Services and Pods, and checks of registered
 * processes. At a broker, which no other part of ours looks after, also the watch over authorities of federations.
 */
function startControllers(
  { world, log }: HomeOptions,
  { transport, metrics, parts }: { transport: HttpTransport; metrics: Metrics; parts: Parts },
): void {
  const client = createClient(transport, { world, userAgent: 'portolan-home' });
  const endpoints = runEndpointsController({ client, world, log, metrics, concurrency: endpointsConcurrency });
  parts.add('endpoints controller', () => endpoints.stop());
  const prober = createRealProber();
  const registrations = new RegistrationController({ client, world, log, prober, metrics });
  parts.add('registration controller', () => registrations.stop());
  const authorities = watchAllAuthorities({ client, world, log });
  parts.add('authority watch', () => authorities.stop());
}

/** Each write waits for the disk, and those that wait together share one wait. */
const endpointsConcurrency = 16;

const self = { commonName: 'system:portolan', organizations: ['system:masters'] };

/**
 * Calls the API server of this process directly, as one of its own. Each call waits for a turn of the event loop:
 * without a socket in between, a busy controller would block all others.
 */
function localTransport(api: Api): HttpTransport {
  return {
    send: async (request) => {
      await new Promise((resolve) => setImmediate(resolve));
      return api.handle({ ...request, clientCertificate: self });
    },
    close: () => {},
  };
}

// If the server listens on all addresses and advertises none, the kubeconfig uses the loopback address.
function addressOf(edge: ApiServer, { listen, advertise }: HomeOptions): string {
  const name = listen.host === '0.0.0.0' || listen.host === '::' ? '127.0.0.1' : listen.host;
  return `https://${formatHostPort(advertise?.host ?? name, advertise?.port || edge.address.port)}`;
}

/** Under which clients inside know the API server. */
const apiNames = ['', '.default', '.default.svc', '.default.svc.cluster.local'].map((rest) => `kubernetes${rest}`);

/** The first of the range, as in Kubernetes. */
function apiClusterIp({ serviceRanges = defaultServiceRanges }: HomeOptions): string {
  const range = parseRange(serviceRanges[0] ?? '');
  return range === undefined ? '' : formatIp({ family: range.family, value: range.first + 1n });
}

// What is advertised may be a name, and the server may listen on all addresses: then the first address that others can reach.
function ownAddress(edge: ApiServer, { listen, advertise }: HomeOptions): { address: string; port: number } {
  if (advertise !== undefined && isIp(advertise.host))
    return { address: advertise.host, port: advertise.port || edge.address.port };
  const isWildcard = listen.host === '0.0.0.0' || listen.host === '::';
  const address = isWildcard || !isIp(listen.host) ? firstOutsideAddress() : listen.host;
  return { address: address ?? '127.0.0.1', port: edge.address.port };
}

function firstOutsideAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.find(({ internal, address }) => !internal && !address.startsWith('fe80:'))?.address;
}

function isIp(text: string): boolean {
  return parseIp(text) !== undefined;
}

/** `.portolan/east` is home `east`, `.portolan` is `portolan`. */
export function homeNameOf(directory: string): string {
  return basename(resolve(directory)).replace(/^\.+/, '') || 'portolan';
}
