// Peers with everything they refer to: their trust bundles and our certificates for them, from Secrets. Names the
// peer that changed, whatever changed about it.

import { createHash, X509Certificate } from 'node:crypto';
import type { InformerReader } from '../../kube/controller/informer.ts';
import type { Secret } from '../../kube/objects/secret.ts';
import { ingressBoundsOf } from '../kinds/ingress-address.ts';
import {
  isAccepted,
  type Peer,
  type PeerSpec,
  peerDefaults,
  peerUrl,
  retryAnnotation,
  splitPem,
} from '../kinds/peer.ts';
import { type ClaimBounds, trustDomainOf } from '../kinds/shared-service.ts';
import type { LinkConfig, Reserved } from '../rules/link-config.ts';
import { isSameMesh } from '../rules/same-mesh.ts';
import { type OwnCredentials, whatIsWrongWithPair } from './credentials.ts';
import { mayBe, type TrustedPeer } from './trust.ts';

export interface KnownPeer {
  readonly name: string;
  readonly uid: string;
  readonly spec: PeerSpec;
  readonly rootsPem: readonly string[];
  readonly trusted: TrustedPeer;
  /** Ours for this peer alone; undefined for the one of the mesh. */
  readonly credentials: OwnCredentials | undefined;
  readonly retry: string;
  /** Why nothing can be exchanged with it, if so. */
  readonly wrong: string;
  /** A problem beside the last good configuration, which still serves. */
  readonly warning: string;
}

export interface PeerRegistryOptions {
  readonly peers: InformerReader<Peer>;
  readonly secrets: InformerReader<Secret>;
  readonly secretsNamespace: string;
  /** `peer` is undefined when it is gone. */
  readonly onChanged: (name: string, peer: KnownPeer | undefined) => void;
}

export class PeerRegistry {
  readonly #options: PeerRegistryOptions;
  readonly #known = new Map<string, KnownPeer>();
  /** Names of the peers that refer to a Secret. */
  readonly #users = new Map<string, Set<string>>();
  /** In which order Peers were first seen. */
  readonly #turns = new Map<string, number>();
  readonly #off: (() => void)[] = [];

  constructor(options: PeerRegistryOptions) {
    this.#options = options;
  }

  start(): void {
    const { peers, secrets } = this.#options;
    this.#off.push(
      secrets.on((_key, next, previous) => this.#secretChanged((next ?? previous)?.metadata.name ?? '')),
      peers.on((_key, next, previous) => {
        // Its status is our own writing.
        if (next !== undefined && previous !== undefined && versionOf(next) === versionOf(previous)) return;
        this.#look((next ?? previous)?.metadata.name ?? '', next);
      }),
    );
  }

  stop(): void {
    for (const off of this.#off.splice(0)) off();
  }

  get(name: string): KnownPeer | undefined {
    return this.#known.get(name);
  }

  values(): Iterable<KnownPeer> {
    return this.#known.values();
  }

  *trusted(): Generator<TrustedPeer> {
    for (const { trusted } of this.#known.values()) yield trusted;
  }

  #secretChanged(secret: string): void {
    for (const name of [...(this.#users.get(secret) ?? [])]) {
      for (const peer of this.#options.peers.values()) if (peer.metadata.name === name) this.#look(name, peer);
    }
  }

  // Times are in seconds: of two in the same one, the one that was seen first here.
  #isOlder({ metadata: one }: Peer, other: Peer['metadata']): boolean {
    const [first = '', second = ''] = [one.creationTimestamp, other.creationTimestamp];
    return first === second ? this.#turnOf(one) < this.#turnOf(other) : first < second;
  }

  #turnOf({ uid = '', name }: Peer['metadata']): number {
    const key = `${uid} ${name}`;
    const turn = this.#turns.get(key) ?? this.#turns.size;
    this.#turns.set(key, turn);
    return turn;
  }

  #look(name: string, peer: Peer | undefined): void {
    if (peer !== undefined) this.#turnOf(peer.metadata);
    for (const users of this.#users.values()) users.delete(name);
    if (peer === undefined) {
      const gone = this.#known.get(name);
      this.#known.delete(name);
      this.#options.onChanged(name, undefined);
      if (gone !== undefined) this.#lookAtTwins({ metadata: { name, creationTimestamp: '' }, spec: gone.spec } as Peer);
      return;
    }
    const known = this.#resolve(peer);
    this.#known.set(name, known);
    this.#options.onChanged(name, known);
    this.#lookAtTwins(peer);
  }

  // A younger Peer of the same mesh is held back, or no longer.
  #lookAtTwins({ metadata, spec }: Peer): void {
    for (const other of [...this.#options.peers.values()]) {
      const known = this.#known.get(other.metadata.name);
      const isYounger = other.metadata.name !== metadata.name && !this.#isOlder(other, metadata);
      if (known === undefined || !isYounger || other.spec.trust.domain !== spec.trust.domain) continue;
      const again = this.#resolve(other);
      if (again.wrong === known.wrong) continue;
      this.#known.set(other.metadata.name, again);
      this.#options.onChanged(other.metadata.name, again);
    }
  }

  /** An older Peer that stands for the same mesh. */
  #twinOf({ metadata, spec }: Peer, roots: readonly string[]): string | undefined {
    const own = { ...spec.trust, roots };
    for (const other of this.#options.peers.values()) {
      if (other.metadata.name === metadata.name || !this.#isOlder(other, metadata)) continue;
      const known = this.#known.get(other.metadata.name);
      const pem = known?.rootsPem ?? splitPem(other.spec.trust.bundle ?? '');
      if (isSameMesh(own, { ...other.spec.trust, roots: pem })) return other.metadata.name;
    }
    return undefined;
  }

  #resolve(peer: Peer): KnownPeer {
    const { spec, metadata } = peer;
    const { rootsPem, roots, wrong: wrongRoots } = this.#roots(peer);
    const credentials = this.#credentials(peer);
    const hasRoots = roots.length > 0;
    const twin = this.#twinOf(peer, rootsPem);
    const wrong = whatIsWrong({ spec, wrongRoots: hasRoots ? '' : wrongRoots, credentials, twin });
    const unavailable = whyUnavailable(spec, wrong);
    return {
      name: metadata.name,
      uid: metadata.uid ?? '',
      spec,
      rootsPem,
      trusted: {
        peer: metadata.name,
        domain: spec.trust.domain,
        identities: spec.trust.identities ?? [],
        roots,
        ...(unavailable === '' ? {} : { unavailable }),
      },
      credentials: typeof credentials === 'string' ? undefined : credentials,
      retry: metadata.annotations?.[retryAnnotation] ?? '',
      wrong,
      warning: hasRoots && wrongRoots !== '' ? `${wrongRoots}; the roots that it held before still count` : '',
    };
  }

  // A Secret that is replaced is gone for a moment, and one can be written half: the roots that it held are better than none.
  #roots({ spec, metadata }: Peer): Roots {
    const secret = spec.trust.bundleSecret?.name;
    const bundle = spec.trust.bundle ?? this.#secret(metadata, secret, 'ca.crt');
    const rootsPem = splitPem(bundle ?? '');
    const roots = readRoots(rootsPem) ?? [];
    if (roots.length > 0) return { rootsPem, roots, wrong: '' };
    const wrong =
      bundle === undefined
        ? `the Secret ${secret} with its roots has no ca.crt`
        : 'its trust bundle holds no certificate in PEM';
    const before = this.#known.get(metadata.name);
    const isSame = before?.uid === metadata.uid && before?.spec.trust.bundleSecret?.name === secret;
    if (before === undefined || !isSame || spec.trust.bundle !== undefined) return { rootsPem, roots, wrong };
    return { rootsPem: before.rootsPem, roots: before.trusted.roots, wrong };
  }

  #credentials({ spec, metadata }: Peer): OwnCredentials | string | undefined {
    const name = spec.certificateSecret?.name;
    if (name === undefined) return undefined;
    const certificate = this.#secret(metadata, name, 'tls.crt') ?? '';
    const key = this.#secret(metadata, name, 'tls.key') ?? '';
    const isMissing = certificate === '' || key === '';
    const wrong = isMissing ? 'it has no tls.crt and tls.key' : whatIsWrongWithPair({ certificate, key });
    if (wrong === '') return { certificate, key };
    // A rotation that went wrong ends no stream: the pair that we had is better than none.
    const before = this.#known.get(metadata.name);
    const isSame = before?.uid === metadata.uid && before?.spec.certificateSecret?.name === name;
    return (isSame ? before?.credentials : undefined) ?? `the Secret ${name}: ${wrong}`;
  }

  #secret(metadata: Peer['metadata'], name: string | undefined, field: string): string | undefined {
    if (name === undefined) return undefined;
    const users = this.#users.get(name) ?? new Set();
    this.#users.set(name, users.add(metadata.name));
    const data = this.#options.secrets.get(`${this.#options.secretsNamespace}/${name}`)?.data?.[field];
    return data === undefined ? undefined : Buffer.from(data, 'base64').toString('utf8');
  }
}

function versionOf({ metadata }: Peer): string {
  return `${metadata.uid} ${metadata.generation} ${metadata.annotations?.[retryAnnotation] ?? ''}`;
}

function readRoots(pem: readonly string[]): X509Certificate[] | undefined {
  try {
    return pem.map((one) => new X509Certificate(one));
  } catch {
    return undefined;
  }
}

interface Roots {
  readonly rootsPem: readonly string[];
  readonly roots: readonly X509Certificate[];
  /** Also when those from before are used. */
  readonly wrong: string;
}

interface Findings {
  readonly spec: PeerSpec;
  readonly wrongRoots: string;
  /** The problem with them, if it is a text. */
  readonly credentials: OwnCredentials | string | undefined;
  readonly twin: string | undefined;
}

function whatIsWrong({ spec, wrongRoots, credentials, twin }: Findings): string {
  const { domain, identities = [] } = spec.trust;
  if (wrongRoots !== '') return wrongRoots;
  if (twin !== undefined)
    return `Peer ${twin} is the same mesh (trust domain ${domain}, same roots): remove one of the two, or give each its own identities`;
  const foreign = identities.find((identity) => trustDomainOf(identity) !== domain);
  if (foreign !== undefined) return `the identity ${foreign} is outside its trust domain ${domain}`;
  return typeof credentials === 'string' ? credentials : '';
}

/** The text for the peer: it does not reveal the names of our Secrets. */
function whyUnavailable(spec: PeerSpec, wrong: string): string {
  if (wrong !== '') return 'the configuration of this peer cannot be used at present';
  return spec.suspended ? 'this peer is suspended here' : '';
}

/** Undefined for a peer that we only serve. */
export function linkConfigOf(peer: KnownPeer, own: Reserved): LinkConfig | undefined {
  const { spec } = peer;
  const isItsStream = isTakenOverItsStream(spec);
  if (spec.address === undefined && !isItsStream) return undefined;
  return {
    address: spec.address === undefined || isItsStream ? '' : peerUrl(spec.address),
    context: spec.context,
    serverName: spec.serverName,
    versions: isItsStream ? ['v1alpha2'] : (spec.versions ?? peerDefaults.versions),
    roots: peer.rootsPem,
    isExpected: (identity) => mayBe(identity, peer.trusted),
    bounds: boundsOf(spec, own),
    accepts: (service) => isAccepted(spec, service),
    quietMs: (spec.foreign?.quietSeconds ?? peerDefaults.quietSeconds) * 1000,
    graceMs: (spec.foreign?.graceSeconds ?? peerDefaults.graceSeconds) * 1000,
    retentionMs: (spec.retentionSeconds ?? peerDefaults.retentionSeconds) * 1000,
    servicesMax: spec.servicesMax ?? peerDefaults.servicesMax,
    bytesMax: (spec.storedMegabytesMax ?? peerDefaults.storedMegabytesMax) * 1024 * 1024,
  };
}

/** The peer must be allowed to speak the later draft for that. */
export function isTakenOverItsStream({ takeOverItsStream, versions }: PeerSpec): boolean {
  return takeOverItsStream === true && (versions ?? peerDefaults.versions).includes('v1alpha2');
}

function boundsOf(spec: PeerSpec, own: Reserved): ClaimBounds {
  return {
    allowedDomains: spec.allowedDomains ?? [],
    ownZones: own.zones,
    trustDomains: [spec.trust.domain, ...(spec.trust.workloadDomains ?? [])],
    ingress: ingressBoundsOf(spec.allowedIngress, own),
  };
}

/**
 * Fingerprint of the inputs of a link. New roots and certificates are for the next stream and do not end the one that
 * is open.
 */
export function fingerprintOf({ uid, spec }: KnownPeer): string {
  const { trust, certificateSecret: _certificate, window: _window, ...rest } = spec;
  const { domain, identities } = trust;
  return createHash('sha256')
    .update(JSON.stringify([uid, rest, domain, identities]))
    .digest('base64');
}
