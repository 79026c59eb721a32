// The configuration of a link to one peer: the address of the owner, the imported services, retention and limits.

import type { PeerVersion } from '../kinds/peer.ts';
import { type ClaimBounds, type SharedService, validateSharedService } from '../kinds/shared-service.ts';

/** Addresses and names of this cluster, which no peer may claim. */
export interface Reserved {
  readonly zones: readonly string[];
  /** Ranges that this cluster gives addresses from. */
  readonly ranges: readonly string[];
  /** Names and addresses of our own API and endpoints. */
  readonly hosts: readonly string[];
}

export interface LinkConfig {
  /** `https://host:port`; empty if the peer's own stream is taken from. */
  readonly address: string;
  readonly serverName?: string;
  /** In the order in which they are tried. */
  readonly versions: readonly PeerVersion[];
  readonly roots: readonly string[];
  readonly isExpected: (identity: string) => boolean;
  readonly bounds: ClaimBounds;
  /** Sent with each request, if the owner wants one; only in the later draft. */
  readonly context?: string;
  readonly accepts: (service: SharedService) => boolean;
  readonly quietMs: number;
  readonly graceMs: number;
  /** 0 is for ever. */
  readonly retentionMs: number;
  /** How many services of this peer may be kept. */
  readonly servicesMax: number;
  /** How many bytes their content may take. */
  readonly bytesMax: number;
  /** Nothing is dialed, for this reason; what is stored grows old like that of an owner that is away. */
  readonly held?: Held;
}

export interface Held {
  readonly kind: 'suspended' | 'misconfigured';
  readonly reason: string;
}

export interface LinkLimits {
  readonly messageBytesMax: number;
  readonly connectMsMax: number;
  readonly keepAliveMs: number;
  /** Time for the answer to a keep-alive: a silent owner is told within 15 s, also on a busy machine. */
  readonly answerMsMax: number;
  /** Messages that wait for the disk before we stop reading for a while. */
  readonly pendingPause: number;
  /** The same in bytes: one owner with large services must not fill our memory, nor the home's. */
  readonly pendingBytesPause: number;
  readonly unsentBytesMax: number;
  /** How long an owner may be away before its services are marked stale. */
  readonly staleAfterMs: number;
  /** For so long after its Peer was made, the other mesh may not have heard of us. */
  readonly newPeerMs: number;
}

export const linkLimits: LinkLimits = {
  // Less than what any home takes in one piece: etcd has room for 1.5 MiB.
  messageBytesMax: 1024 * 1024,
  connectMsMax: 10_000,
  keepAliveMs: 10_000,
  answerMsMax: 3_000,
  pendingPause: 4096,
  pendingBytesPause: 8 * 1024 * 1024,
  unsentBytesMax: 8 * 1024 * 1024,
  staleAfterMs: 30_000,
  newPeerMs: 30_000,
};

/** Whether what was stored under an earlier configuration may stay under this one. */
export function mayHold({ bounds, accepts }: LinkConfig, service: SharedService): boolean {
  return accepts(service) && validateSharedService(service, bounds).length === 0;
}
