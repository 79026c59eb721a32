// All peers that we take from: a link and a store for each, and who holds which name among them. Follows the Peers of
// this cluster: a new one is dialed, a changed one starts anew, one that is gone takes its services with it at once.

import type { Dial } from '../../base/grpc/transport-client.ts';
import { errorText, type Log } from '../../base/log.ts';
import { sleep, type World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { formatTime, withConditions } from '../../kube/objects/conditions.ts';
import { aliasOf, type PeerService, peerLabel, peerServiceType } from '../kinds/peer-service.ts';
import { type LinkConfig, type LinkLimits, mayHold } from '../rules/link-config.ts';
import { NameClaims } from '../rules/name-claims.ts';
import type { IngressTarget } from '../rules/reach.ts';
import type { ServeBack } from '../transport/served-back.ts';
import { ConsumerLink, type LinkReport } from './consumer-link.ts';
import { PeerServiceStore, type StoredService } from './peer-service-store.ts';

export interface ConsumedPeer {
  readonly name: string;
  /** Changes whenever anything that matters to the link does. */
  readonly fingerprint: string;
  readonly config: LinkConfig;
  /** Hostnames that this cluster gives to services of the peer, by id. */
  readonly aliases: ReadonlyMap<string, readonly string[]>;
  readonly lastContactMs?: number;
  /** How long its owner had been away when that was last looked at. */
  readonly awayMs?: number;
  /** How often it let itself be asked for a sign of life. */
  readonly keepAliveMs?: number;
  /** Wall time at which its Peer was made. */
  readonly madeMs?: number;
  readonly credentials: () => { readonly certificate: string; readonly key: string } | undefined;
  /** In place of the usual one, for a peer that is taken from over its own stream. */
  readonly dial?: Dial;
}

export interface ConsumerOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly namespace: string;
  readonly dial: Dial;
  readonly serve?: ServeBack;
  readonly limits?: Partial<LinkLimits>;
  /** Whether there is a Peer of this name, as far as can be known now; what is there of others is removed. */
  readonly isPeer: (name: string) => boolean;
  readonly onChanged?: (peer: string) => void;
  readonly onRefused?: (refusal: { readonly peer: string; readonly id: string; readonly reason: string }) => void;
}

interface Entry {
  peer: ConsumedPeer;
  readonly store: PeerServiceStore;
  link: ConsumerLink | undefined;
  /** Ends what is being started. */
  starting: AbortController;
}

const retryMs = 2000;
/** Ingresses of one peer that are tried, and services that are looked through for them. */
const ingressesMax = 4;
const lookedMax = 1000;
/** Services written late by any process outlive their peer by little more than this. */
const sweepMs = 300_000;
/** A selector has room for so many names; with more peers than that all services are looked at. */
const namesInSelectorMax = 100;

export class Consumer {
  readonly #options: ConsumerOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #names = new NameClaims();
  /** Work that must end before anything of that peer is read or written again. */
  readonly #endings = new Map<string, Promise<void>>();
  /** The home's contents decide who came first: no name is given or denied before all of them were read. */
  readonly #loading = new Set<Entry>();
  readonly #untold = new Set<string>();
  readonly #stopping = new AbortController();
  #sweeping: Promise<void> | undefined;

  constructor(options: ConsumerOptions) {
    this.#options = options;
  }

  /** Takes from this peer from now on, under this configuration. */
  set(peer: ConsumedPeer): void {
    const present = this.#entries.get(peer.name);
    if (present?.peer.fingerprint === peer.fingerprint) return;
    const absence = present?.link?.absence;
    present?.link?.stop();
    present?.starting.abort();
    const store = present?.store ?? this.#newStore(peer.name);
    const known = absence === undefined ? peer : { ...peer, lastContactMs: absence.sinceMs, awayMs: absence.awayMs };
    const entry: Entry = { peer: known, store, link: undefined, starting: new AbortController() };
    this.#loading.add(entry);
    this.#entries.set(peer.name, entry);
    void this.#start(entry);
  }

  /** Ends the stream and keeps what is stored: the peer is suspended, or another process takes over. */
  pause(name: string): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    this.#entries.delete(name);
    entry.starting.abort();
    entry.link?.stop();
    this.#end(name, () => entry.store.stop());
  }

  /**
   * deregisterConsumer (seed 000): the services of this peer go, all at once; resolves when they are gone. Writes under
   * way end first, and a peer that comes back under this name is not taken from before.
   */
  deregister(name: string): Promise<void> {
    const store = this.#entries.get(name)?.store ?? this.#newStore(name);
    this.pause(name);
    return this.#end(name, async () => {
      await store.stop();
      await this.#untilDone(`services of peer ${name} cannot be removed yet`, () => store.removeAll());
    });
  }

  /** One after the other for each peer, in the order of their coming. */
  #end(name: string, work: () => Promise<void>): Promise<void> {
    const before = this.#endings.get(name) ?? Promise.resolve();
    const ending = before.then(work).then(() => {
      if (this.#endings.get(name) === ending) this.#endings.delete(name);
    });
    this.#endings.set(name, ending);
    return ending;
  }

  async #untilDone(failure: string, work: () => Promise<void>, signal = this.#stopping.signal): Promise<void> {
    while (!signal.aborted) {
      try {
        return await work();
      } catch (error) {
        this.#options.log.warn(failure, { error: errorText(error) });
        await sleep(this.#options.world.timers, retryMs, signal).catch(() => {});
      }
    }
  }

  retry(name: string): void {
    this.#entries.get(name)?.link?.retry();
  }

  /** Its roots or our certificate for it are other ones. */
  trustChanged(name: string): void {
    this.#entries.get(name)?.link?.trustChanged();
  }

  /** Our own certificate changed: a peer that refused the old one may accept this. */
  credentialsChanged(): void {
    for (const { link } of this.#entries.values()) if (link?.state.kind === 'stopped') link.retry();
  }

  report(name: string): LinkReport | undefined {
    return this.#entries.get(name)?.link?.report();
  }

  *reports(): Generator<LinkReport & { readonly peer: string }> {
    for (const [peer, { link }] of this.#entries) if (link !== undefined) yield { ...link.report(), peer };
  }

  /** Some of its ingresses, each with a service that is reached there; of many services the first are looked at. */
  ingressesOf(name: string): IngressTarget[] {
    const found = new Map<string, IngressTarget>();
    let looked = 0;
    for (const { spec, isQuarantined } of this.#entries.get(name)?.store.values() ?? []) {
      looked += 1;
      if (looked > lookedMax || found.size >= ingressesMax) break;
      if (isQuarantined) continue;
      for (const { address, port } of spec.endpoints ?? []) {
        const key = `${address} ${port}`;
        if (!found.has(key)) found.set(key, { address, port, serverName: spec.sni ?? spec.id });
      }
    }
    return [...found.values()].slice(0, ingressesMax);
  }

  store(name: string): PeerServiceStore | undefined {
    return this.#entries.get(name)?.store;
  }

  /** From now on removes services of deleted peers: they may have been deleted while we were away. */
  startSweeping(): void {
    const { signal } = this.#stopping;
    const sweepAndWait = async () => {
      while (!signal.aborted) {
        await this.#untilDone('services of peers that are gone cannot be removed yet', () => this.sweep());
        await sleep(this.#options.world.timers, sweepMs, signal).catch(() => {});
      }
    };
    this.#sweeping ??= sweepAndWait();
  }

  async sweep(): Promise<void> {
    const { client, namespace, isPeer } = this.#options;
    const gone = new Set<string>();
    const selection = { namespace, labelSelector: this.#selectorOfOthers() };
    for await (const page of client.listPaged<PeerService>(peerServiceType, selection)) {
      for (const { metadata } of page.items) gone.add(metadata.labels?.[peerLabel] ?? '');
    }
    for (const peer of gone) if (!isPeer(peer) && !this.#stopping.signal.aborted) await this.deregister(peer);
  }

  // Services of peers that we consume need not be read.
  #selectorOfOthers(): string {
    const names = [...this.#entries.keys()];
    const isShort = names.length > 0 && names.length <= namesInSelectorMax;
    return isShort ? `${peerLabel},${peerLabel} notin (${names.join(',')})` : peerLabel;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const name of [...this.#entries.keys()]) this.pause(name);
    await Promise.all([...this.#endings.values(), this.#sweeping]);
  }

  #newStore(peer: string): PeerServiceStore {
    const { client, world, log, namespace } = this.#options;
    const onStored = (id: string, stored: StoredService | undefined) => this.#claimNames(peer, id, stored);
    return new PeerServiceStore({ client, world, log: log.with({ peer }), namespace, peer, onStored });
  }

  async #start(entry: Entry): Promise<void> {
    const { world, log, dial, serve, limits, onChanged, onRefused } = this.#options;
    const { peer, store, starting } = entry;
    const peerLog = log.with({ peer: peer.name });
    await this.#endings.get(peer.name);
    const load = () => store.load((service) => mayHold(peer.config, service));
    await this.#untilDone(`what peer ${peer.name} shared cannot be read yet`, load, starting.signal);
    this.#loaded(entry);
    if (starting.signal.aborted) return;
    entry.link = new ConsumerLink({
      world,
      log: peerLog,
      peer: peer.name,
      config: peer.config,
      store,
      dial: peer.dial ?? dial,
      // A peer's own stream is served already.
      ...(serve === undefined || peer.dial !== undefined ? {} : { serve }),
      credentials: peer.credentials,
      lastContactMs: peer.lastContactMs,
      awayMs: peer.awayMs,
      keepAliveMs: peer.keepAliveMs,
      madeMs: peer.madeMs,
      limits,
      noteOf: (id) => this.#noteOf(peer.name, id),
      onChanged: () => onChanged?.(peer.name),
      onRefused: (refusal) => onRefused?.({ peer: peer.name, ...refusal }),
    });
    entry.link.start();
  }

  #loaded(entry: Entry): void {
    this.#loading.delete(entry);
    if (this.#loading.size > 0) return;
    const untold = [...this.#untold];
    this.#untold.clear();
    for (const key of untold) this.#tellNames(key);
  }

  #claimNames(peer: string, id: string, stored: StoredService | undefined): void {
    const key = keyOf(peer, id);
    if (stored === undefined || stored.isQuarantined) {
      for (const other of this.#names.remove(key)) this.#tellNames(other);
      return;
    }
    const aliases = this.#entries.get(peer)?.peer.aliases.get(id) ?? [];
    const { spec } = stored;
    const lowerCase = (spec.fqdn ?? '').toLowerCase().replace(/\.$/, '');
    // Mostly it is its id, of which one copy is enough.
    const fqdn = lowerCase === id ? id : lowerCase;
    const names = [...new Set([fqdn, aliasOf(peer, spec), ...aliases])];
    const others = this.#names.set({ key, names, sinceMs: stored.firstSeenMs });
    for (const other of [key, ...others]) this.#tellNames(other);
  }

  /** Writes nothing where the rule holds: a service answers at its FQDN and its alias. */
  #tellNames(key: string): void {
    if (this.#loading.size > 0) return void this.#untold.add(key);
    const { peer, id } = parseKey(key);
    this.#entries.get(peer)?.link?.noted(id);
    const store = this.#entries.get(peer)?.store;
    const stored = store?.get(id);
    if (store === undefined || stored === undefined) return;
    const { hostnames, lost, contested } = this.#names.verdict(key);
    const present = store.statusOf(id).conditions ?? [];
    const hadConflict = present.some(({ type }) => type === 'NamesHeld');
    const isPlain = lost.length === 0 && contested.length === 0;
    const hasAliases = (this.#entries.get(peer)?.peer.aliases.get(id)?.length ?? 0) > 0;
    if (isPlain && !hasAliases && !hadConflict && (store.statusOf(id).hostnames ?? null) === null) return;
    const conditions = isPlain
      ? present.filter(({ type }) => type !== 'NamesHeld')
      : [...withConditions(present, [namesCondition(lost, contested)], { now: this.#now() })];
    const isRule = isPlain && !hasAliases;
    store.setStatus(id, { hostnames: isRule ? null : [...hostnames], conditions });
  }

  /** For the owner. The message does not name the other peer: our relations to others are not its concern. */
  #noteOf(peer: string, id: string): string {
    const { hostnames, lost, contested } = this.#names.verdict(keyOf(peer, id));
    const whose = (key: string) => (parseKey(key).peer === peer ? `your service ${parseKey(key).id}` : 'another peer');
    const here = hostnames.length === 0 ? 'it has no name here' : `here it answers at ${hostnames.join(', ')}`;
    const taken = lost.map(
      ({ name, holder }) => `${name} is held by ${whose(holder)}, which claimed it first; ${here}`,
    );
    const kept = contested.map(
      ({ name, others }) =>
        `${name} is also claimed by ${[...new Set(others.map(whose))].join(', ')}; it stays with you`,
    );
    return [...taken, ...kept].join('; ');
  }

  #now(): string {
    return formatTime(this.#options.world.clock.wallMs());
  }
}

function namesCondition(
  lost: readonly { readonly name: string; readonly holder: string }[],
  contested: readonly { readonly name: string; readonly others: readonly string[] }[],
) {
  const taken = lost.map(({ name, holder }) => `${name} is held by ${describe(holder)}, which claimed it first`);
  const kept = contested.map(({ name, others }) => `${name} is also claimed by ${others.map(describe).join(', ')}`);
  return {
    type: 'NamesHeld',
    status: lost.length === 0 ? 'True' : 'False',
    reason: lost.length === 0 ? 'Contested' : 'HeldByAnother',
    message: [...taken, ...kept].join('; '),
  } as const;
}

function keyOf(peer: string, id: string): string {
  return `${peer} ${id}`;
}

function parseKey(key: string): { peer: string; id: string } {
  const space = key.indexOf(' ');
  return { peer: key.slice(0, space), id: key.slice(space + 1) };
}

function describe(key: string): string {
  const { peer, id } = parseKey(key);
  return `${id} of peer ${peer}`;
}
