// The facts of one cluster that doctor has read, or the reason why it could not. Pure.

import type { AddressClaim } from '../addresses/address-claim.ts';
import type { RefusedRecord } from '../clusterset/explain/refused-records.ts';
import type { SetState } from '../clusterset/explain/set-state.ts';
import type { ServiceExport } from '../clusterset/kinds/service-export.ts';
import type { ServiceExportPolicy } from '../clusterset/kinds/service-export-policy.ts';
import type { ServiceImport } from '../clusterset/kinds/service-import.ts';
import type { MembershipRecord } from '../clusterset/membership/membership.ts';
import type { Enforcement } from '../clusterset/rules/access/enforcement.ts';
import type { PairReach } from '../clusterset/rules/networks/pairs.ts';
import type { MeshExternalService } from '../external/kinds/mesh-external-service.ts';
import type { Federation } from '../federation/kinds/federation.ts';
import type { Readiness } from '../kube/client/readiness.ts';
import type { EndpointSlice } from '../kube/objects/endpoint-slice.ts';
import type { PartStatus } from '../kube/objects/part-status.ts';
import type { Service } from '../kube/objects/service.ts';
import type { Peer } from '../peering/kinds/peer.ts';
import type { PeerExport } from '../peering/kinds/peer-export.ts';

export type Read<T> = { readonly value: T } | { readonly why: string };

export type Health = Readiness;

export interface SetFacts {
  readonly state: SetState;
  /** Records that are not counted. */
  readonly refused: readonly RefusedRecord[];
  /** Services whose import or record was behind in two looks. */
  readonly behind: readonly string[];
}

/** The membership, and how the broker answered. */
export type BrokerFacts =
  | { readonly kind: 'none' }
  | { readonly kind: 'away' | 'refused'; readonly why: string }
  | { readonly kind: 'answers'; readonly set: SetFacts };

/** Where it lies, and its text; or its life alone, as a part reports it. */
export type CertificateFacts = { readonly subject: string } & (
  | { readonly pem: string }
  | { readonly startMs: number; readonly endMs: number }
);

/** A name as a resolver answered it, beside the addresses of its import. */
export interface AskedName {
  readonly name: string;
  readonly resolver: string;
  readonly wanted: readonly string[];
  readonly got: readonly string[] | string;
}

/** A resolver that answers from data that may be old. */
export interface ResolverState {
  readonly resolver: string;
  /** Zones that are not followed at present, or come from a copy on disk. */
  readonly stale: readonly string[];
  /** Why, if that is known. */
  readonly why: string;
  /** Why it cannot copy its names to disk; empty if it can, or need not. */
  readonly copyProblem: string;
}

/** The cluster's CoreDNS asks other servers for the zone of the clusterset than our resolvers; none, if it has no such zone. */
export interface ClusterDnsFacts {
  readonly zone: string;
  readonly addresses: readonly string[];
  readonly forwards: readonly string[];
}

export interface TriedConnection {
  readonly service: string;
  /** Where it was tried from. */
  readonly from: string;
  readonly problems: readonly string[];
}

/** Answers of parts that were asked through their home. */
export interface Answers<T> {
  readonly answers: readonly T[];
  /** Parts that could not be asked, each with the reason. */
  readonly unasked: readonly string[];
  /** Why there was nobody to ask; empty otherwise. */
  readonly idle: string;
}

export interface ClusterFacts {
  /** Its id, or the name of the context if it is no member. */
  readonly cluster: string;
  readonly nowMs: number;
  readonly ownVersion: string;
  readonly server: string;
  readonly health: Read<Health>;
  readonly membership: Read<MembershipRecord | undefined>;
  readonly broker: Read<BrokerFacts>;
  readonly parts: Read<readonly PartStatus[]>;
  readonly federations: Read<readonly Federation[]>;
  readonly exports: Read<readonly ServiceExport[]>;
  readonly imports: Read<readonly ServiceImport[]>;
  readonly policies: Read<readonly ServiceExportPolicy[]>;
  readonly services: Read<readonly Service[]>;
  readonly slices: Read<readonly EndpointSlice[]>;
  readonly claims: Read<readonly AddressClaim[]>;
  readonly peers: Read<readonly Peer[]>;
  readonly peerExports: Read<readonly PeerExport[]>;
  readonly external: Read<readonly MeshExternalService[]>;
  readonly certificates: Read<readonly CertificateFacts[]>;
  /** Reads that were refused. */
  readonly forbidden: readonly string[];
  readonly asked: Read<Answers<AskedName>>;
  readonly resolvers: Read<Answers<ResolverState>>;
  readonly connections: Read<Answers<TriedConnection>>;
  /** Undefined if it asks our resolvers, or is not to do so. */
  readonly clusterDns: Read<ClusterDnsFacts | undefined>;
  /** How this cluster reaches each other one; none where all share one network. */
  readonly pairs: Read<readonly PairReach[]>;
  /** Whether calls of other clusters are limited here; undefined where access is open. */
  readonly access: Read<Enforcement | undefined>;
}

/** Whether a part of this kind reports here, or did lately. */
export function hasHad({ parts }: ClusterFacts, name: string): boolean {
  return 'value' in parts && parts.value.some(({ part }) => part === name);
}

export class NotRead extends Error {}

export function need<T>(read: Read<T>): T {
  if ('value' in read) return read.value;
  throw new NotRead(read.why);
}

/** The clusterset as the broker has it; undefined if this cluster is no member. */
export function needSet(facts: ClusterFacts): SetFacts | undefined {
  const broker = need(facts.broker);
  if (broker.kind === 'none') return undefined;
  if (broker.kind === 'answers') return broker.set;
  throw new NotRead(`the broker cannot be asked: ${broker.why}`);
}

/** The check of every answer, beside what could not be asked. */
export function each<T, F>({ answers, unasked, idle }: Answers<T>, check: (answer: T) => readonly F[]) {
  return { found: answers.flatMap(check), unasked, idle };
}
