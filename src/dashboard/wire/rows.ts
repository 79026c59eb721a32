// Data between server and page: rows by collection, and the messages that carry them. Types only, so that both sides
// can read them. Times are milliseconds since 1970 of the server's clock.

import type { Severity } from '../../doctor/codes.ts';

/** How a fact stands: fine, in conflict, fine in part, failed, old, or not known. Never shown by colour alone. */
export type Health = 'ok' | 'conflict' | 'limited' | 'failed' | 'stale' | 'unknown';

export interface HomeRow {
  readonly name: string;
  /** Id of the cluster whose home it is, if that is known. */
  readonly cluster: string;
  readonly role: 'broker' | 'member' | 'home';
  /** Signed out: it does not accept the token. Behind: it answers, and a watch is not open. */
  readonly state: 'loading' | 'live' | 'behind' | 'lost' | 'signed out';
  readonly why: string;
  /** When it last answered; 0 is never. */
  readonly asOfMs: number;
  /** Kinds that have not been listed yet. */
  readonly waitsFor: readonly string[];
  /** Kinds that the bearer may not see there. */
  readonly denied: readonly string[];
  /** Namespaces that the bearer sees; undefined is all. */
  readonly namespaces: readonly string[] | undefined;
}

export interface ClusterRow {
  readonly id: string;
  readonly region: string;
  readonly zone: string;
  /** Clusters of one network reach each other directly. */
  readonly network: string;
  readonly health: Health;
  /** Why it stands so, in words. */
  readonly says: string;
  readonly renewedMs: number | undefined;
  readonly services: number;
  readonly ready: number;
  readonly imports: number | undefined;
  readonly isDraining: boolean;
  readonly versions: readonly string[];
  readonly parts: readonly PartRow[];
  /** Ids of clusters that import something of it. */
  readonly exportsTo: readonly string[];
  /** How it reaches the others; absent where all share one network, or where its home is not shown. */
  readonly reaches?: readonly ReachRow[];
}

/** Connections of the nodes of one cluster. Rates are those of the last seconds, rounded. */
export interface TrafficRow {
  /** The cluster that the clients are in. */
  readonly id: string;
  /** Why not all of it is known; empty if it is. */
  readonly why: string;
  /** Since the proxies were started. */
  readonly connections: number;
  readonly failed: number;
  readonly perSecond: number;
  readonly failedPerSecond: number;
  /** By the cluster that serves them, the busiest first. */
  readonly to: readonly RateRow[];
  /** Services, the busiest first; not all of them. */
  readonly services: readonly RateRow[];
}

export interface RateRow {
  /** A cluster, or `namespace/name` of a service. */
  readonly id: string;
  readonly perSecond: number;
  readonly failedPerSecond: number;
}

interface ReachRow {
  readonly cluster: string;
  readonly way: 'directly' | 'gateway' | 'none';
  readonly text: string;
  readonly isWell: boolean;
}

export interface PartRow {
  readonly part: string;
  readonly node: string;
  readonly state: 'reporting' | 'silent';
  readonly reportedMs: number | undefined;
  readonly version: string;
}

export interface ServiceRow {
  readonly key: string;
  readonly type: string;
  readonly health: Health;
  readonly says: string;
  readonly ips: readonly string[];
  readonly exporters: readonly ExporterCell[];
  readonly conflicts: readonly string[];
}

export interface ExporterCell {
  readonly cluster: string;
  readonly ready: number | undefined;
  readonly health: Health;
  /** Fields in which it differs from the outcome. */
  readonly differs: readonly string[];
}

/** Findings of one cause. */
export interface ProblemRow {
  readonly id: string;
  readonly code: string;
  readonly severity: Severity;
  readonly title: string;
  readonly subject: string;
  readonly message: string;
  readonly means: string;
  readonly fix: string;
  readonly sinceMs: number | undefined;
  /** Clusters that see it. */
  readonly clusters: readonly string[];
  /** Consequences: other findings, and affected services. */
  readonly follows: readonly string[];
  readonly services: readonly string[];
  readonly serviceCount: number;
}

export interface SkipRow {
  readonly cluster: string;
  readonly why: string;
  readonly codes: readonly string[];
}

export interface PeerRow {
  readonly id: string;
  readonly cluster: string;
  readonly name: string;
  readonly health: Health;
  readonly taking: PeerSideRow | undefined;
  readonly giving: PeerSideRow | undefined;
  readonly services: readonly PeerServiceRow[];
  /** Services that are not as their owner sent them. */
  readonly differences: readonly string[];
}

export interface PeerSideRow {
  readonly state: string;
  readonly message: string;
  readonly services: number;
  readonly refused: number;
  readonly lag: number;
  readonly lagSeconds: number;
  readonly lastContactMs: number | undefined;
  readonly refusals: readonly { readonly id: string; readonly reason: string }[];
  /** Differences between both sides, from the other one's notes. */
  readonly notes: readonly { readonly id: string; readonly note: string }[];
  readonly withdrawnInSeconds: number | undefined;
}

export interface PeerServiceRow {
  readonly name: string;
  readonly hostname: string;
  readonly state: string;
}

export interface ExternalRow {
  readonly id: string;
  readonly cluster: string;
  readonly name: string;
  readonly health: Health;
  readonly says: string;
  readonly matches: readonly string[];
  readonly destination: string;
  readonly vips: readonly { readonly ip: string; readonly hostname: string }[];
  readonly unavailable: readonly { readonly hostname: string; readonly reason: string }[];
  readonly overlaps: readonly string[];
}

export interface EventRow {
  readonly id: string;
  readonly atMs: number;
  readonly cluster: string;
  readonly kind: 'export' | 'conflict' | 'lease' | 'peer' | 'event' | 'dashboard';
  readonly health: Health;
  readonly subject: string;
  readonly text: string;
}

export interface Collections {
  readonly homes: HomeRow;
  readonly clusters: ClusterRow;
  readonly services: ServiceRow;
  readonly problems: ProblemRow;
  readonly skipped: SkipRow;
  readonly peers: PeerRow;
  readonly external: ExternalRow;
  readonly events: EventRow;
  readonly traffic: TrafficRow;
}

export type CollectionName = keyof Collections;
export const collectionNames: readonly CollectionName[] = [
  'homes',
  'clusters',
  'services',
  'problems',
  'skipped',
  'peers',
  'external',
  'events',
  'traffic',
];

/** Null in place of a row: it is gone. */
export type Changes = { readonly [Name in CollectionName]?: Readonly<Record<string, Collections[Name] | null>> };

export type Message =
  | {
      readonly kind: 'hello';
      readonly bearer: string;
      readonly version: string;
      readonly clusterset: string;
      /** Whether clusters can be cut off from here. */
      readonly isDemo: boolean;
      readonly nowMs: number;
    }
  /** The first one has everything. Numbers have no gaps. */
  | { readonly kind: 'change'; readonly number: number; readonly nowMs: number; readonly changes: Changes }
  | { readonly kind: 'beat'; readonly number: number; readonly nowMs: number }
  | { readonly kind: 'end'; readonly why: string };
