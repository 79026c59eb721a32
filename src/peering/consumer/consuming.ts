// Runs the consumer of this process, and keeps it in step with the Peers: with replicas only while this one leads, without
// always. Derives from each Peer the link to it.

import type { InformerReader } from '../../kube/controller/informer.ts';
import { type Candidate, standForLeader } from '../../kube/controller/leader.ts';
import type { Secret } from '../../kube/objects/secret.ts';
import type { Peer, PeerVersion } from '../kinds/peer.ts';
import type { Held, Reserved } from '../rules/link-config.ts';
import type { IncomingStreams } from '../transport/incoming-streams.ts';
import type { CredentialsSource } from '../trust/credentials.ts';
import {
  fingerprintOf,
  isTakenOverItsStream,
  type KnownPeer,
  linkConfigOf,
  type PeerRegistry,
} from '../trust/peer-registry.ts';
import { type ConsumedPeer, Consumer, type ConsumerOptions } from './consumer.ts';

export interface ConsumingOptions extends Omit<ConsumerOptions, 'isPeer'> {
  readonly isReplicated: boolean;
  readonly peers: InformerReader<Peer>;
  readonly secrets: InformerReader<Secret>;
  readonly registry: PeerRegistry;
  readonly incoming: IncomingStreams;
  readonly own: () => Reserved;
  readonly credentials: CredentialsSource;
  /** Versions spoken at all. */
  readonly versions: readonly PeerVersion[];
}

export class Consuming {
  readonly #options: ConsumingOptions;
  /** The last retry annotation and trust of each peer. */
  readonly #seen = new Map<string, { readonly retry: string; readonly trust: string }>();
  #candidate: Candidate | undefined;
  #consumer: Consumer | undefined;

  constructor(options: ConsumingOptions) {
    this.#options = options;
  }

  /** Undefined while another replica takes from peers. */
  get consumer(): Consumer | undefined {
    return this.#consumer;
  }

  start(): void {
    const { client, world, log, namespace, isReplicated } = this.#options;
    if (!isReplicated) {
      void this.#begin();
      return;
    }
    this.#candidate = standForLeader({
      client,
      world,
      log,
      namespace,
      name: 'portolan-peering',
      identity: world.random.uuid(),
      whileLeading: async (signal) => {
        await this.#begin();
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        await this.#end();
      },
    });
  }

  stop(): Promise<void> {
    return this.#candidate?.stop() ?? this.#end();
  }

  ownChanged(): void {
    for (const peer of this.#options.registry.values()) this.peerChanged(peer.name, peer);
  }

  peerChanged(name: string, peer: KnownPeer | undefined): void {
    if (this.#consumer !== undefined) this.#consume(this.#consumer, name, peer);
  }

  /** The peer opened a stream on which it may be taken from. */
  streamOpened(peer: string): void {
    const known = this.#options.registry.get(peer);
    if (known !== undefined && isTakenOverItsStream(known.spec)) this.#consumer?.retry(peer);
  }

  async #begin(): Promise<void> {
    const { registry, peers, secrets } = this.#options;
    const consumer = new Consumer({ ...this.#options, isPeer: (name) => registry.get(name) !== undefined });
    this.#consumer = consumer;
    await Promise.all([peers.whenSynced(), secrets.whenSynced()]);
    if (this.#consumer !== consumer) return;
    for (const peer of registry.values()) this.#consume(consumer, peer.name, peer);
    consumer.startSweeping();
  }

  async #end(): Promise<void> {
    const consumer = this.#consumer;
    this.#consumer = undefined;
    await consumer?.stop();
  }

  #consume(consumer: Consumer, name: string, peer: KnownPeer | undefined): void {
    const { registry, incoming, credentials } = this.#options;
    const own = this.#options.own();
    const config = peer && linkConfigOf(peer, own);
    if (peer === undefined || config === undefined) {
      this.#seen.delete(name);
      void consumer.deregister(name);
      return;
    }
    const versions = config.versions.filter((version) => this.#options.versions.includes(version));
    // Looked up when a stream is dialed, so that new roots and certificates count from the next one on.
    const fresh = () => registry.get(name) ?? peer;
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
      credentials: () => fresh().credentials ?? credentials.current(),
      ...(isTakenOverItsStream(peer.spec) ? { dial: incoming.dialTo(name) } : {}),
      ...this.#lastContact(name),
    });
    const before = this.#seen.get(name);
    const now = { retry: peer.retry, trust: `${peer.rootsPem.join('')} ${peer.credentials?.certificate ?? ''}` };
    this.#seen.set(name, now);
    if (before !== undefined && before.retry !== now.retry) consumer.retry(name);
    else if (before !== undefined && before.trust !== now.trust) consumer.trustChanged(name);
  }

  /** As it is written now: an earlier process may have consumed from this peer. */
  #lastContact(peer: string): Pick<ConsumedPeer, 'lastContactMs' | 'awayMs' | 'keepAliveMs' | 'madeMs'> {
    const { peers, namespace } = this.#options;
    const { metadata, status } = peers.get(`${namespace}/${peer}`) ?? {};
    const { lastContact, awaySeconds = 0, keepAliveSeconds = 0 } = status?.consumer ?? {};
    const times = { keepAliveMs: keepAliveSeconds * 1000, madeMs: Date.parse(metadata?.creationTimestamp ?? '') || 0 };
    if (lastContact === undefined) return times;
    return { lastContactMs: Date.parse(lastContact), awayMs: awaySeconds * 1000, ...times };
  }
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
