// The parts of peering on one home, put together: what is exported, who may see it, the endpoint, and our side of others'
// catalogs. Sockets come from outside, so that the same parts run under a virtual clock.

import type { X509Certificate } from 'node:crypto';
import type {
  CallHandlers,
  GrpcServer,
  GrpcServerOptions,
  RefusedCaller,
  ServerCall,
} from '../base/grpc/server-options.ts';
import { codes } from '../base/grpc/status.ts';
import type { Dial } from '../base/grpc/transport-client.ts';
import type { Log } from '../base/log.ts';
import { LogBudget } from '../base/log-budget.ts';
import type { Metrics } from '../base/metrics.ts';
import type { World } from '../base/world.ts';
import type { Client } from '../kube/client/client.ts';
import { type DataPlaneWatch, watchDataPlane } from '../kube/controller/data-plane.ts';
import type { Consumer } from './consumer/consumer.ts';
import { Consuming } from './consumer/consuming.ts';
import { type PeerVersion, peerDefaults } from './kinds/peer.ts';
import type { MeshDefaults } from './kinds/peer-export.ts';
import { Owner, type ServedPeer } from './owner/owner.ts';
import { OwnerCatalog } from './owner/owner-catalog.ts';
import { PlainRequests } from './owner/plain-requests.ts';
import { RefusedCallers } from './owner/refused-callers.ts';
import { ReplicaClaims } from './owner/replica-claims.ts';
import { type LinkLimits, linkLimits, type Reserved } from './rules/link-config.ts';
import { Findings } from './status/findings.ts';
import { IngressWatch, type ProbeIngress } from './status/ingress-watch.ts';
import { measurePeering, type PeeringMeter } from './status/peering-metrics.ts';
import { StatusWriter } from './status/status-writer.ts';
import { IncomingStreams } from './transport/incoming-streams.ts';
import type { CredentialsSource, OwnCredentials } from './trust/credentials.ts';
import { type KnownPeer, PeerRegistry } from './trust/peer-registry.ts';
import { judgeCertificate, type PeerCaller, type PeerVerdict } from './trust/trust.ts';
import { WatchedObjects } from './watched-objects.ts';

export type PeeringServerOptions = GrpcServerOptions<PeerCaller>;

export interface PeeringOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly client: Client;
  /** Where Peers and PeerServices lie. */
  readonly namespace: string;
  /** Where the Secrets lie that Peers name, and introductions; beside the Peers if left out. */
  readonly secretsNamespace?: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly mesh: MeshDefaults;
  /** No peer may claim any of it. Asked again after `ownChanged`. */
  readonly own: () => Reserved;
  readonly credentials: CredentialsSource;
  /** Versions spoken at all. */
  readonly versions?: readonly PeerVersion[];
  /** Several processes share this home: one of them takes from peers, all of them serve. */
  readonly isReplicated?: boolean;
  readonly serve: (options: PeeringServerOptions) => Promise<GrpcServer>;
  readonly dial: Dial;
  readonly limits?: Partial<LinkLimits>;
  /** Tries the ingresses of peers and our own; absent: they are not tried. */
  readonly ingressProbe?: { readonly probe: ProbeIngress; readonly everyMs: number };
}

export interface Peering {
  readonly port: number;
  readonly owner: Owner;
  readonly catalog: OwnerCatalog;
  consumer(): Consumer | undefined;
  /** A fact about this cluster changed. */
  ownChanged(): void;
  stop(): Promise<void>;
}

/** The size limit is the same for messages that a peer publishes on its own stream and for those of an owner. */
const messageBytesMax = linkLimits.messageBytesMax;
/** One for its stream, and some for the command line and for a stream that takes its place. */
const connectionsPerPeer = 16;
/** A half-open consumer is noticed after at most twice this time. */
const serverKeepAliveMs = 10_000;

export async function startPeering(options: PeeringOptions): Promise<Peering> {
  const parts = new PeeringParts(options);
  try {
    await parts.start();
  } catch (error) {
    // Status writers and informers would go on, against another process that serves.
    await parts.stop();
    throw error;
  }
  return parts;
}

class PeeringParts implements Peering {
  readonly owner: Owner;
  readonly catalog: OwnerCatalog;
  readonly #options: PeeringOptions;
  readonly #versions: readonly PeerVersion[];
  readonly #watched: WatchedObjects;
  readonly #registry: PeerRegistry;
  readonly #consuming: Consuming;
  readonly #plainRequests: PlainRequests;
  readonly #statuses: StatusWriter;
  readonly #meter: PeeringMeter;
  readonly #refused: RefusedCallers;
  readonly #refusedLines: LogBudget;
  readonly #findings: Findings;
  #planes: DataPlaneWatch | undefined;
  #ingresses: IngressWatch | undefined;
  readonly #stops: (() => unknown)[] = [];
  #server: GrpcServer | undefined;

  constructor(options: PeeringOptions) {
    const { client, world, log, namespace, secretsNamespace = namespace, isReplicated = false } = options;
    const common = { client, world, log, namespace };
    this.#options = options;
    this.#versions = options.versions ?? peerDefaults.versions;
    this.#refused = new RefusedCallers(world.clock);
    this.#refusedLines = new LogBudget(world.clock);
    this.#watched = new WatchedObjects({ ...common, secretsNamespace });
    const { peers, secrets } = this.#watched;
    this.catalog = new OwnerCatalog({
      mesh: options.mesh,
      onChanged: (peer, id) => this.owner.changed(peer, id),
      onExportChanged: (key) => this.#statuses.exportChanged(key),
    });
    const incoming = new IncomingStreams({
      timers: world.timers,
      onOpened: (peer) => this.#consuming.streamOpened(peer),
    });
    this.owner = new Owner({
      incoming,
      clock: world.clock,
      timers: world.timers,
      random: world.random,
      log,
      catalog: this.catalog,
      peer: (name) => this.#served(name),
      hasSynced: () => this.#watched.hasSynced(),
      revision: () => this.#watched.revision(),
      observer: {
        changed: (peer) => this.#statuses.peerChanged(peer),
        refused: ({ peer, reason }) => this.#meter.refused({ peer, side: 'owner', reason }),
      },
    });
    this.#registry = new PeerRegistry({
      peers,
      secrets,
      secretsNamespace,
      onChanged: (name, peer) => this.#peerChanged(name, peer),
    });
    this.#plainRequests = new PlainRequests({
      ...common,
      secretsNamespace,
      owner: this.owner,
      catalog: this.catalog,
      isKnown: (peer) => this.#registry.get(peer) !== undefined,
    });
    this.#consuming = new Consuming({
      ...common,
      ...{ isReplicated, peers, secrets, incoming, registry: this.#registry, versions: this.#versions },
      ...{ own: options.own, credentials: options.credentials, dial: options.dial, limits: options.limits },
      serve: (call) => this.owner.accept(call, { isOurs: true }),
      onChanged: (peer) => this.#statuses.peerChanged(peer),
      onRefused: ({ peer, reason }) => this.#meter.refused({ peer, side: 'consumer', reason }),
    });
    this.#findings = this.#createFindings();
    const findings = this.#findings;
    this.#statuses = new StatusWriter({
      ...common,
      peerStatus: (peer) => findings.ofPeer(peer),
      peer: (peer) => peers.get(`${namespace}/${peer}`),
      exportsTo: (peer) => this.catalog.exportsTo(peer),
      exportFindings: (key) => findings.ofExport(key),
    });
    const measured = {
      owner: this.owner,
      absent: () => findings.absentConsumers(),
      consumer: () => this.consumer(),
      wallMs: () => world.clock.wallMs(),
    };
    this.#meter =
      options.metrics === undefined
        ? { refused() {}, unauthenticated() {} }
        : measurePeering(options.metrics, measured);
  }

  get port(): number {
    return this.#server?.port ?? 0;
  }

  consumer(): Consumer | undefined {
    return this.#consuming.consumer;
  }

  ownChanged(): void {
    this.#consuming.ownChanged();
  }

  #createFindings(): Findings {
    const { world, namespace, isReplicated = false } = this.#options;
    const { peers, exports } = this.#watched;
    const claims = new ReplicaClaims({
      isReplicated,
      wallMs: () => world.clock.wallMs(),
      report: (peer) => this.owner.report(peer),
      written: (peer) => peers.get(`${namespace}/${peer}`)?.status?.owner,
    });
    return new Findings({
      ...{ clock: world.clock, registry: this.#registry, exports, owner: this.owner, catalog: this.catalog },
      ...{ refused: this.#refused, claims, consumer: () => this.consumer() },
      plane: (role) => this.#planes?.of(role) ?? { kind: 'unknown' },
      tried: (ingresses) => this.#ingresses?.tried(ingresses) ?? [],
    });
  }

  async start(): Promise<void> {
    const { credentials, serve, listen, log } = this.#options;
    this.#watched.start();
    this.#stops.push(() => this.#watched.stop());
    this.#stops.push(() => this.#statuses.stop());
    this.#followCatalog();
    const own = await this.#ownCredentials();
    this.#server = await serve({
      ...listen,
      tls: own,
      callerKey: ({ peer }) => peer,
      judge: (presented) => this.#judge(presented),
      accept: (call) => this.#accept(call),
      onRefused: (caller) => this.#refusedCaller(caller),
      route: (request) => this.#plainRequests.route(request),
      messageBytesMax,
      keepAliveMs: serverKeepAliveMs,
      limits: { connectionsPerCaller: connectionsPerPeer },
      log,
    });
    this.#stops.push(() => this.#server?.close());
    this.#stops.push(credentials.onChanged(() => this.#credentialsChanged()));
    this.#registry.start();
    this.#stops.push(() => this.#registry.stop());
    this.#consuming.start();
    this.#stops.push(() => this.#consuming.stop());
    this.#followReach();
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) await stop();
  }

  #ownCredentials(): Promise<OwnCredentials> {
    const { credentials, log } = this.#options;
    const present = credentials.current();
    if (present !== undefined) return Promise.resolve(present);
    log.warn('waiting for a certificate of our own');
    return new Promise((resolve) => {
      const off = credentials.onChanged(() => {
        const own = credentials.current();
        if (own === undefined) return;
        off();
        resolve(own);
      });
      this.#stops.push(off);
    });
  }

  #followReach(): void {
    const { client, world, log, namespace, ingressProbe } = this.#options;
    const onChange = () => this.#reachChanged();
    const planes = watchDataPlane({
      ...{ client, world, log, namespace, onChange },
      ...{ roles: ['sidecar', 'ingress'], needed: 'peers' },
    });
    this.#planes = planes;
    this.#stops.push(() => planes.stop());
    if (ingressProbe === undefined) return;
    const ingresses = new IngressWatch({ world, ...ingressProbe, targets: () => this.#findings.ingresses(), onChange });
    this.#ingresses = ingresses;
    this.#stops.push(() => ingresses.stop());
  }

  #reachChanged(): void {
    for (const { name } of this.#registry.values()) this.#statuses.peerChanged(name);
    for (const key of this.#watched.exports.keys()) this.#statuses.exportChanged(key);
  }

  #followCatalog(): void {
    this.#watched.exports.on((_key, next, previous) => {
      const { namespace = '', name } = (next ?? previous)!.metadata;
      this.catalog.setExport(namespace, name, next);
      // Another replica may have written what it could not know better.
      if (this.#options.isReplicated && next !== undefined) this.#statuses.exportChanged(`${namespace}/${name}`);
    });
    this.#watched.services.on((_key, next, previous) => {
      const { namespace = '', name } = (next ?? previous)!.metadata;
      this.catalog.setService(namespace, name, next);
    });
    this.#watched.imports.on((_key, next, previous) => {
      const { namespace = '', name } = (next ?? previous)!.metadata;
      this.catalog.setImport(namespace, name, next);
    });
  }

  // A peer that is not known yet must not be refused as untrusted: it would not come back.
  #judge(presented: readonly X509Certificate[]): PeerVerdict {
    if (!this.#watched.hasSynced())
      return { kind: 'refused', code: codes.unavailable, reason: "the owner's catalog has not synced yet" };
    return judgeCertificate(presented, this.#registry.trusted(), this.#options.world.clock.wallMs());
  }

  #accept(call: ServerCall<PeerCaller>): CallHandlers | undefined {
    this.#refused.forget(call.caller.peer);
    return this.owner.accept(call);
  }

  #refusedCaller({ code, claimed, reason, from }: RefusedCaller): void {
    if (code !== codes.unauthenticated) return;
    const fields = this.#refusedLines.take();
    if (fields !== undefined) this.#options.log.warn('peering call refused', { reason, from, ...fields });
    this.#meter.unauthenticated(claimed);
    if (claimed !== undefined && this.#refused.add(claimed, reason)) this.#statuses.peerChanged(claimed);
  }

  #served(name: string): ServedPeer | undefined {
    const peer = this.#registry.get(name);
    if (peer === undefined || peer.spec.suspended) return undefined;
    const versions = (peer.spec.versions ?? peerDefaults.versions).filter((version) =>
      this.#versions.includes(version),
    );
    return { name, epoch: peer.uid, window: peer.spec.window ?? peerDefaults.window, versions };
  }

  #credentialsChanged(): void {
    const own = this.#options.credentials.current();
    if (own !== undefined) this.#server?.setCertificate(own.certificate, own.key);
    this.consumer()?.credentialsChanged();
  }

  #peerChanged(name: string, peer: KnownPeer | undefined): void {
    // Perhaps only to be made anew: it may ask once more, and is refused then.
    if (peer === undefined) this.owner.forget(name, 'there is no Peer for it any more');
    this.#server?.trustChanged();
    this.#refused.forget(name);
    if (peer !== undefined && peer.warning !== '') this.#options.log.warn(peer.warning, { peer: name });
    const report = this.owner.report(name);
    const served = this.#served(name);
    if (report !== undefined && !served?.versions.includes(report.version))
      this.owner.restart(name, `version ${report.version} is switched off`);
    else if (served !== undefined) this.owner.setWindow(name, served.window);
    this.#consuming.peerChanged(name, peer);
    for (const key of this.catalog.exportsTo(name)) this.#statuses.exportChanged(key);
    this.#statuses.peerChanged(name);
  }
}
