// Peer: another mesh, with which services are shared. Its trust settings and the location of its catalog.

import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { SharedService } from './shared-service.ts';

export const peerType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'peers',
  kind: 'Peer',
  isNamespaced: true,
};

export type PeerVersion = 'v1alpha1' | 'v1alpha2';

export interface Peer extends KubernetesObject {
  spec: PeerSpec;
  status?: PeerStatus;
}

export interface PeerSpec {
  /** Without it we take nothing from the peer, and only serve it. */
  address?: string;
  serverName?: string;
  /** Takes what the peer publishes on the stream that it opens to us; only the later draft allows it. */
  takeOverItsStream?: boolean;
  /** Sent with each request of the later draft, if the peer wants one. */
  context?: string;
  suspended?: boolean;
  versions?: PeerVersion[];
  trust: PeerTrust;
  certificateSecret?: { name: string };
  allowedDomains?: string[];
  /** Ranges, addresses and domains of its ingress that would be refused as special or our own. */
  allowedIngress?: string[];
  acceptedTags?: string[];
  acceptedLabels?: Record<string, string>;
  aliases?: { id: string; hostname: string }[];
  retentionSeconds?: number;
  /** How many of its services may be kept here. */
  servicesMax?: number;
  /** How much their content may take, in MiB. */
  storedMegabytesMax?: number;
  window?: number;
  foreign?: { quietSeconds?: number; graceSeconds?: number };
}

export interface PeerTrust {
  domain: string;
  bundle?: string;
  bundleSecret?: { name: string };
  identities?: string[];
  /** Further trust domains that its services' SANs may name. */
  workloadDomains?: string[];
}

interface PeerStatus {
  consumer?: PeerConsumerStatus;
  owner?: PeerOwnerStatus;
  observedGeneration?: number;
  conditions?: Condition[];
}

/**
 * Idle: nothing to do. Stale: the other side is away. Refused: stopped until something changes or a retry is
 * requested.
 */
export type PeerState = 'Idle' | 'Connecting' | 'Syncing' | 'Synced' | 'Stale' | 'Refused';

export interface PeerSideStatus {
  state?: PeerState;
  message?: string;
  since?: string;
  version?: PeerVersion;
  services?: number;
  refused?: number;
  unacknowledged?: number;
  lastContact?: string;
  lastFullSync?: string;
  /** Services not up to date. */
  lag?: number;
  lagSeconds?: number;
  refusals?: { id: string; reason: string }[];
}

export interface PeerConsumerStatus extends PeerSideStatus {
  reconciliation?: 'Marker' | 'Quiescence';
  /** Services that it no longer names; they go when their grace is over. */
  suspects?: number;
  /** How often it is asked for a sign of life. */
  keepAliveSeconds?: number;
  /** How long it has been away, not counting the time in which we did not run. */
  awaySeconds?: number;
}

export interface PeerOwnerStatus extends PeerSideStatus {
  identity?: string;
  /** The peer's notes on services that it accepted. */
  notes?: { id: string; note: string }[];
}

/** Changing it asks for a new try after a refusal. */
export const retryAnnotation = 'portolan.dev/retry';
export const refusalsShownMax = 20;

/** Defaults of absent fields; as in the definition. */
export const peerDefaults = {
  versions: ['v1alpha1', 'v1alpha2'] as readonly PeerVersion[],
  retentionSeconds: 86_400,
  servicesMax: 100_000,
  storedMegabytesMax: 32,
  window: 1024,
  quietSeconds: 3,
  graceSeconds: 60,
};

/** Whether a service has the tags and labels that the Peer asks for. */
export function isAccepted({ acceptedTags, acceptedLabels }: PeerSpec, service: SharedService): boolean {
  const tags = acceptedTags ?? [];
  if (tags.length > 0 && !tags.some((tag) => service.tags.includes(tag))) return false;
  return Object.entries(acceptedLabels ?? {}).every(([key, value]) => service.labels[key] === value);
}

/** `https://host:port`, however the address was written. */
export function peerUrl(address: string): string {
  return address.startsWith('https://') ? address : `https://${address}`;
}

/** The certificates of a PEM text, one text each. */
export function splitPem(text: string): string[] {
  return [...text.matchAll(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g)].map(([one]) => `${one}\n`);
}
