// The parts of peering on one home, put together: what is exported, who may see it, the endpoint, and our side of others'
// catalogs. Sockets come from outside, so that the same parts run under a virtual clock.

import type { X509Certificate } from 'node:crypto';
import type {
  CallHandlers,
  GrpcServer,
  GrpcServerOptions,
  PlainAnswer,
  PlainRequest,
  PlainRoute,
  RefusedCaller,
  ServerCall,
} from '../base/grpc/server-options.ts';
import { codes } from '../base/grpc/status.ts';
import type { Dial } from '../base/grpc/transport-client.ts';
import type { Log } from '../base/log.ts';
import { LogBudget } from '../base/log-budget.ts';
import type { Metrics } from '../base/metrics.ts';
import { sleep, type World } from '../base/world.ts';
import type { Client } from '../kube/client/client.ts';
import { createInformer, type Informer } from '../kube/controller/informer.ts';
import { standForLeader } from '../kube/controller/leader.ts';
import { type Secret, secretType } from '../kube/objects/secret.ts';
import { type Service, serviceType } from '../kube/objects/service.ts';
import { type ConsumedPeer, Consumer } from './consumer/consumer.ts';
import { type Peer, type PeerVersion, peerDefaults, peerType } from './kinds/peer.ts';
import { type MeshDefaults, type PeerExport, peerExportType } from './kinds/peer-export.ts';
import { introduce } from './owner/introduction.ts';
import { IntroductionLimits } from './owner/introduction-limits.ts';
import { Owner, type ServedPeer } from './owner/owner.ts';
import { OwnerCatalog } from './owner/owner-catalog.ts';
import { RefusedCallers } from './owner/refused-callers.ts';
import { ReplicaClaims } from './owner/replica-claims.ts';
import { type Held, type LinkLimits, linkLimits, type OwnGround } from './rules/link-config.ts';
import { catalogPath, introductionPath } from './rules/peer-introduction.ts';
import { consumerStatus, ownerStatus } from './status/peer-status.ts';
import { type AbsentConsumer, measurePeering, type PeeringMeter } from './status/peering-metrics.ts';
import { StatusWriter, type WrittenStatus } from './status/status-writer.ts';
import { IncomingStreams } from './transport/incoming-streams.ts';
import { v1alpha1 } from './transport/wire.ts';
import type { CredentialsSource, OwnCredentials } from './trust/credentials.ts';
import {
  fingerprintOf,
  isTakenOverItsStream,
  type KnownPeer,
  linkConfigOf,
  PeerRegistry,
} from './trust/peer-registry.ts';
import { judgeCertificate, type PeerCaller, type PeerVerdict } from './trust/trust.ts';

export type PeeringServerOptions = GrpcServerOptions<PeerCaller>;

export interface PeeringOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly client: Client;
  /** Where Peers, PeerServices and Secrets lie. */
  readonly namespace: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly mesh: MeshDefaults;
  /** No peer may claim any of it. Asked again after `ownChanged`. */
  readonly own: () => OwnGround;
  readonly credentials: CredentialsSource;
  /** Versions spoken at all. */
  readonly versions?: readonly PeerVersion[];
  /** Several processes share this home: one of them takes from peers, all of them serve. */
  readonly isReplicated?: boolean;
  readonly serve: (options: PeeringServerOptions) => Promise<GrpcServer>;
  readonly dial: Dial;
  readonly limits?: Partial<LinkLimits>;
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
/** Between the write of a Peer and our watch on Peers. */
const knownMsMax = 5_000;
const knownStepMs = 20;
/** A half-open consumer is noticed after at most twice this time. */
export const serverKeepAliveMs = 10_000;

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
  readonly #services: Informer<Service>;
  readonly #exports: Informer<PeerExport>;
  readonly #peers: Informer<Peer>;
  readonly #secrets: Informer<Secret>;
  readonly #registry: PeerRegistry;
  readonly #claims: ReplicaClaims;
  readonly #statuses: StatusWriter;
  readonly #meter: PeeringMeter;
  readonly #refused: RefusedCallers;
  readonly #refusedLines: LogBudget;
  readonly #introductions: IntroductionLimits;
  readonly #incoming: IncomingStreams;
  readonly #stops: (() => unknown)[] = [];
  #server: GrpcServer | undefined;
  #revision = 0;
  readonly #startedMs: number;
  #consumer: Consumer | undefined;

  constructor(options: PeeringOptions) {
    const { client, world, log, namespace } = options;
    const common = { client, world, log };
    this.#options = options;
    this.#startedMs = world.clock.wallMs();
    this.#refused = new RefusedCallers(world.clock);
    this.#refusedLines = new LogBudget(world.clock);
    this.#introductions = new IntroductionLimits(world.clock);
    this.#services = createInformer<Service>({ ...common, type: serviceType, keep: keepService });
    this.#exports = createInformer<PeerExport>({ ...common, type: peerExportType });
    this.#peers = createInformer<Peer>({ ...common, type: peerType, namespace });
    this.#secrets = createInformer<Secret>({ ...common, type: secretType, namespace });
    this.catalog = new OwnerCatalog({
      mesh: options.mesh,
      onChanged: (peer, id) => this.owner.changed(peer, id),
      onExportChanged: (key) => this.#statuses.exportChanged(key),
    });
    this.#incoming = new IncomingStreams({
      timers: world.timers,
      onOpened: (peer) => {
        const known = this.#registry.get(peer);
        if (known !== undefined && isTakenOverItsStream(known.spec)) this.#consumer?.retry(peer);
      },
    });
    this.owner = new Owner({
      incoming: this.#incoming,
      clock: world.clock,
      log,
      catalog: this.catalog,
      peer: (name) => this.#served(name),
      hasSynced: () => this.#hasSynced(),
      revision: () => this.#revisionNow(),
      observer: {
        changed: (peer) => this.#statuses.peerChanged(peer),
        refused: ({ peer, reason }) => this.#meter.refused({ peer, side: 'owner', reason }),
      },
    });
    this.#registry = new PeerRegistry({
      peers: this.#peers,
      secrets: this.#secrets,
      onChanged: (name, peer) => this.#peerChanged(name, peer),
    });
    this.#claims = new ReplicaClaims({
      isReplicated: options.isReplicated ?? false,
      wallMs: () => world.clock.wallMs(),
      report: (peer) => this.owner.report(peer),
      written: (peer) => this.#peers.get(`${namespace}/${peer}`)?.status?.owner,
    });
    this.#statuses = new StatusWriter({
      ...common,
      namespace,
      peerStatus: (peer) => this.#peerStatus(peer),
      exportsTo: (peer) => this.catalog.exportsTo(peer),
      exportFindings: (key) => this.#exportFindings(key),
    });
    const measured = {
      owner: this.owner,
      absent: () => this.#absentConsumers(),
      consumer: () => this.#consumer,
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
    return this.#consumer;
  }

  ownChanged(): void {
    if (this.#consumer === undefined) return;
    for (const peer of this.#registry.values()) this.#consume(this.#consumer, peer.name, peer);
  }

  async start(): Promise<void> {
    const { credentials, serve, listen, log } = this.#options;
    for (const informer of [this.#services, this.#exports, this.#peers, this.#secrets]) {
      informer.start();
      this.#stops.push(() => informer.stop());
    }
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
      route: (request) => this.#route(request),
      messageBytesMax,
      keepAliveMs: serverKeepAliveMs,
      limits: { connectionsPerCaller: connectionsPerPeer },
      log,
    });
    this.#stops.push(() => this.#server?.close());
    this.#stops.push(credentials.onChanged(() => this.#credentialsChanged()));
    this.#registry.start();
    this.#stops.push(() => this.#registry.stop());
    this.#startConsuming();
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

  #followCatalog(): void {
    this.#exports.on((_key, next, previous) => {
      const { namespace = '', name } = (next ?? previous)!.metadata;
      this.catalog.setExport(namespace, name, next);
      // Another replica may have written what it could not know better.
      if (this.#options.isReplicated && next !== undefined) this.#statuses.exportChanged(`${namespace}/${name}`);
    });
    this.#services.on((_key, next, previous) => {
      const { namespace = '', name } = (next ?? previous)!.metadata;
      this.catalog.setService(namespace, name, next);
    });
  }

  #hasSynced(): boolean {
    const all = [this.#services, this.#exports, this.#peers, this.#secrets];
    return all.every(({ hasSynced }) => hasSynced);
  }

  // The older of the two revisions: nothing in the catalog can be older. Not the newest object's: that one may be
  // deleted during a downtime, and the next snapshot would seem older than the last.
  #revisionNow(): number {
    const positions = [this.#services, this.#exports].map((informer) => Number(informer.status().revision ?? 0));
    this.#revision = Math.max(this.#revision, Math.min(...positions) || 0);
    return this.#revision;
  }

  // A peer that is not known yet must not be refused as untrusted: it would not come back.
  #judge(presented: readonly X509Certificate[]): PeerVerdict {
    if (!this.#hasSynced())
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
    const enabled = this.#options.versions ?? peerDefaults.versions;
    const versions = (peer.spec.versions ?? peerDefaults.versions).filter((version) => enabled.includes(version));
    return { name, epoch: peer.uid, window: peer.spec.window ?? peerDefaults.window, versions };
  }

  #credentialsChanged(): void {
    const own = this.#options.credentials.current();
    if (own !== undefined) this.#server?.setCertificate(own.certificate, own.key);
    this.#consumer?.credentialsChanged();
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
    if (this.#consumer !== undefined) this.#consume(this.#consumer, name, peer);
    for (const key of this.catalog.exportsTo(name)) this.#statuses.exportChanged(key);
    this.#statuses.peerChanged(name);
  }

  #startConsuming(): void {
    const { client, world, log, namespace, isReplicated } = this.#options;
    if (!isReplicated) {
      void this.#beginConsuming();
      this.#stops.push(() => this.#endConsuming());
      return;
    }
    const candidate = standForLeader({
      client,
      world,
      log,
      namespace,
      name: 'portolan-peering',
      identity: world.random.uuid(),
      whileLeading: async (signal) => {
        await this.#beginConsuming();
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        await this.#endConsuming();
      },
    });
    this.#stops.push(() => candidate.stop());
  }

  async #beginConsuming(): Promise<void> {
    const { client, world, log, namespace, dial, limits } = this.#options;
    const consumer = new Consumer({
      client,
      world,
      log,
      namespace,
      dial,
      limits,
      serve: (call) => this.owner.accept(call, { isOurs: true }),
      isPeer: (name) => this.#registry.get(name) !== undefined,
      onChanged: (peer) => this.#statuses.peerChanged(peer),
      onRefused: ({ peer, reason }) => this.#meter.refused({ peer, side: 'consumer', reason }),
    });
    this.#consumer = consumer;
    await Promise.all([this.#peers.whenSynced(), this.#secrets.whenSynced()]);
    if (this.#consumer !== consumer) return;
    for (const peer of this.#registry.values()) this.#consume(consumer, peer.name, peer);
    consumer.startSweeping();
  }

  async #endConsuming(): Promise<void> {
    const consumer = this.#consumer;
    this.#consumer = undefined;
    await consumer?.stop();
  }

  readonly #retries = new Map<string, { readonly retry: string; readonly trust: string }>();

  #consume(consumer: Consumer, name: string, peer: KnownPeer | undefined): void {
    const own = this.#options.own();
    const config = peer && linkConfigOf(peer, own);
    if (peer === undefined || config === undefined) {
      this.#retries.delete(name);
      void consumer.deregister(name);
      return;
    }
    const enabled = this.#options.versions ?? peerDefaults.versions;
    const versions = config.versions.filter((version) => enabled.includes(version));
    // Looked up when a stream is dialed, so that new roots and certificates count from the next one on.
    const fresh = () => this.#registry.get(name) ?? peer;
    consumer.set({
      name,
      fingerprint: `${fingerprintOf(peer)} ${versions.join()} ${peer.wrong} ${JSON.stringify(own)}`,
      config: {
        ...config,
        versions,
        ...heldFor(peer),
        get roots() {
          return fresh().rootsPem;
        },
      },
      aliases: aliasesOf(peer),
      credentials: () => fresh().credentials ?? this.#options.credentials.current(),
      ...(isTakenOverItsStream(peer.spec) ? { dial: this.#incoming.dialTo(name) } : {}),
      ...this.#lastContact(name),
    });
    const before = this.#retries.get(name);
    const asked = { retry: peer.retry, trust: `${peer.rootsPem.join('')} ${peer.credentials?.certificate ?? ''}` };
    this.#retries.set(name, asked);
    if (before !== undefined && before.retry !== asked.retry) consumer.retry(name);
    else if (before !== undefined && before.trust !== asked.trust) consumer.trustChanged(name);
  }

  /** As it is written now: an earlier process may have consumed from this peer. */
  #lastContact(peer: string): Pick<ConsumedPeer, 'lastContactMs' | 'awayMs' | 'keepAliveMs' | 'madeMs'> {
    const { metadata, status } = this.#peers.get(`${this.#options.namespace}/${peer}`) ?? {};
    const { lastContact, awaySeconds = 0, keepAliveSeconds = 0 } = status?.consumer ?? {};
    const times = { keepAliveMs: keepAliveSeconds * 1000, madeMs: Date.parse(metadata?.creationTimestamp ?? '') || 0 };
    if (lastContact === undefined) return times;
    return { lastContactMs: Date.parse(lastContact), awayMs: awaySeconds * 1000, ...times };
  }

  #route({ path, verdict, from }: PlainRequest<PeerCaller>): PlainRoute | undefined {
    const { client, namespace, world } = this.#options;
    if (path === introductionPath && !this.#introductions.mayTry(from))
      return { status: 429, body: JSON.stringify({ message: 'too many introductions were tried; try again later' }) };
    if (path === introductionPath)
      return {
        withBody: (body) =>
          introduce({
            ...{ client, namespace, nowMs: world.clock.wallMs(), body },
            untilKnown: (peer) => this.#untilKnown(peer),
          }),
      };
    return path === catalogPath ? this.#listCatalog(verdict) : undefined;
  }

  /** Or until it has taken longer than a watch should. */
  async #untilKnown(peer: string): Promise<void> {
    const { timers } = this.#options.world;
    for (let waitedMs = 0; this.#registry.get(peer) === undefined && waitedMs < knownMsMax; waitedMs += knownStepMs)
      await sleep(timers, knownStepMs);
  }

  /** For `portolan peer diff`: what this peer is offered, by content, and what it refused. */
  #listCatalog(verdict: PeerVerdict): PlainAnswer {
    if (verdict.kind !== 'trusted')
      return {
        status: verdict.code === codes.unauthenticated ? 401 : 503,
        body: JSON.stringify({ message: verdict.reason }),
      };
    const { peer } = verdict.caller;
    const view = this.catalog.view(peer, v1alpha1, {
      epoch: '',
      revision: () => 0,
      hasSynced: () => true,
    });
    const refusals = this.owner.report(peer)?.refusals;
    const services = Array.from(view.ids, (id) => ({
      id,
      service: view.offer(id)?.service,
      refused: refusals?.get(id)?.reason,
    }));
    return { status: 200, body: JSON.stringify({ services }) };
  }

  #peerStatus(name: string): WrittenStatus | undefined {
    const peer = this.#registry.get(name);
    if (peer === undefined) return undefined;
    const nowMs = this.#options.world.clock.wallMs();
    const refused = this.#refused.get(name);
    const why = peer.trusted.unavailable ?? peer.warning;
    const isNews = (refused !== undefined || why !== '') && !this.#claims.isServedElsewhere(name);
    const told = () => ownerStatus(this.owner.report(name), this.catalog.count(name), nowMs, { refused, why });
    const owner = this.#claims.mayTell(name) || isNews ? { owner: told() } : {};
    return { ...owner, ...this.#consumerStatus(peer, nowMs) };
  }

  #consumerStatus(peer: KnownPeer, nowMs: number): Pick<WrittenStatus, 'consumer'> {
    if (this.#consumer === undefined) return {};
    // Null takes away what was written when there still was an address.
    if (peer.spec.address === undefined && !isTakenOverItsStream(peer.spec)) return { consumer: null };
    const report = this.#consumer.report(peer.name);
    if (report === undefined) return {};
    const status = consumerStatus(report, nowMs);
    return { consumer: { ...status, message: status.message || peer.warning } };
  }

  /** Peers that take from us, or should, and are not here. */
  *#absentConsumers(): Generator<AbsentConsumer> {
    for (const { name, spec } of this.#registry.values()) {
      const left = this.owner.left(name);
      const services = this.catalog.count(name);
      if (this.owner.report(name) !== undefined || this.#claims.isServedElsewhere(name)) continue;
      if (spec.suspended || (left === undefined && services === 0)) continue;
      yield {
        ...{ peer: name, services, sinceMs: left?.endedMs ?? this.#startedMs, isRefused: this.#isRefused(name) },
        ...{ aliveMs: left?.aliveMs, fullSyncMs: left?.fullSyncMs },
      };
    }
  }

  #isRefused(peer: string): boolean {
    return this.#refused.get(peer) !== undefined;
  }

  #exportFindings(key: string) {
    const peerExport = this.#exports.get(key);
    if (peerExport === undefined) return undefined;
    return {
      peerExport,
      shares: this.catalog.sharesOf(key),
      report: (peer: string) => this.owner.report(peer),
      offered: (peer: string, id: string) => this.catalog.offered(peer, id),
      isKnown: (peer: string) => this.#registry.get(peer) !== undefined,
      isServedElsewhere: (peer: string) => this.#claims.isServedElsewhere(peer),
    };
  }
}

/** The fields that an export can refer to. */
function keepService({ apiVersion, kind, metadata, spec }: Service): Service {
  const { name, namespace, labels, annotations, resourceVersion, uid } = metadata;
  const ports = spec?.ports?.map(({ port, protocol, appProtocol }) => ({ port, protocol, appProtocol }));
  return {
    apiVersion,
    kind,
    metadata: { name, namespace, labels, annotations, resourceVersion, uid },
    spec: { ports },
  };
}

/** Services of a peer with which nothing can be exchanged stay, keep their names, and grow old. */
function heldFor({ spec, wrong }: KnownPeer): { readonly held?: Held } {
  if (wrong !== '') return { held: { kind: 'misconfigured', reason: wrong } };
  return spec.suspended ? { held: { kind: 'suspended', reason: 'suspended' } } : {};
}

function aliasesOf({ spec }: KnownPeer): Map<string, string[]> {
  const aliases = new Map<string, string[]>();
  for (const { id, hostname } of spec.aliases ?? []) aliases.set(id, [...(aliases.get(id) ?? []), hostname]);
  return aliases;
}
