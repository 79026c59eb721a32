// Answers to single questions of the page: a service, the answer to a name, a plan, figures of parts, the past, connections. Only shapes;
// times are milliseconds since 1970.

import type { Severity } from '../../doctor/codes.ts';
import type { Health } from './rows.ts';

export interface ConditionView {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly sinceMs?: number;
}

export interface ConflictView {
  readonly reason: string;
  readonly field: string;
  readonly winner: string;
  readonly value: string;
  readonly why: string;
  readonly disagreeing: readonly { readonly cluster: string; readonly value: string }[];
  readonly ifWinnerLeft: string;
  readonly waysOut: readonly string[];
}

interface FieldView {
  readonly field: string;
  readonly value: string;
  readonly winner: string;
  readonly says: readonly { readonly cluster: string; readonly value: string; readonly agrees: boolean }[];
}

export interface EndpointView {
  readonly address: string;
  readonly port: string;
  /** The cluster it runs in. */
  readonly cluster: string;
  readonly health: Health;
  readonly says: string;
  readonly zone: string;
  readonly sinceMs: number | undefined;
}

export interface ServiceInCluster {
  readonly cluster: string;
  /** Whether this is how it is now; else as of `asOfMs`. */
  readonly isCurrent: boolean;
  readonly asOfMs: number;
  /** Kinds of this view that the bearer may not see there. */
  readonly denied: readonly string[];
  readonly export: { readonly sinceMs: number | undefined; readonly conditions: readonly ConditionView[] } | undefined;
  readonly import:
    | {
        readonly type: string;
        readonly ips: readonly string[];
        readonly ports: readonly string[];
        readonly clusters: readonly string[];
        readonly sinceMs: number | undefined;
        readonly conditions: readonly ConditionView[];
      }
    | undefined;
  readonly endpoints: readonly EndpointView[];
  readonly endpointCount: number;
  /** Whether connections to its clusterset IP are carried here. */
  readonly traffic: { readonly health: Health; readonly says: string };
  readonly hasResolver: boolean;
}

export interface ServiceView {
  readonly key: string;
  readonly dnsName: string;
  readonly explanation:
    | {
        readonly type: string;
        readonly decider: string;
        readonly why: string;
        readonly fields: readonly FieldView[];
        readonly conflicts: readonly ConflictView[];
        readonly ifLeft: readonly { readonly cluster: string; readonly changes: readonly string[] }[];
      }
    | undefined;
  /** Why there is no explanation. */
  readonly whyNot: string;
  readonly clusters: readonly ServiceInCluster[];
}

export interface NameView {
  readonly cluster: string;
  readonly steps: readonly NameStep[];
}

/** One server's answer; the second is that of the authority. */
export interface NameStep {
  readonly server: string;
  readonly rcode: string;
  readonly handler: string;
  readonly extendedError?: string;
  readonly records: readonly {
    readonly text: string;
    readonly owner?: string;
    readonly near?: string;
    readonly ttlSeconds: number;
    readonly sources: readonly {
      readonly kind: string;
      readonly name: string;
      readonly cluster?: string;
      readonly peer?: string;
      readonly state?: string;
      readonly ageMs?: number;
    }[];
  }[];
  readonly leftOut: readonly { readonly what: string; readonly why: string }[];
}

export interface PlanView {
  readonly cluster: string;
  readonly service: string;
  readonly change: 'export' | 'unexport';
  readonly conditions: readonly ConditionView[] | undefined;
  readonly changes: readonly string[];
  readonly clusters: readonly string[];
  readonly conflicts: readonly ConflictView[];
  readonly elsewhere: readonly {
    readonly cluster: string;
    readonly before: readonly ConditionView[];
    readonly after: readonly ConditionView[];
  }[];
  readonly flip: { readonly from: string; readonly to: string } | undefined;
}

export interface FiguresView {
  readonly atMs: number;
  readonly clusters: readonly ClusterFigures[];
}

export interface ClusterFigures {
  readonly cluster: string;
  /** Why its resolver gives no figures; empty if it does. */
  readonly why: string;
  /** Since the start of its resolver. */
  readonly queries: number | undefined;
  readonly cacheHits: number | undefined;
  readonly cacheMisses: number | undefined;
  /** Mean time from an export in any cluster to its answer here. */
  readonly exportSeconds: number | undefined;
  /** Mean time of changes from where they were seen to their answer. */
  readonly changeSeconds: number | undefined;
  readonly leaseAgeSeconds: number | undefined;
}

/** What is kept of the past, in the order in which it is shown. */
export const measures = [
  'connections',
  'failures',
  'exportSeconds',
  'changeSeconds',
  'queries',
  'cacheShare',
  'leaseAgeSeconds',
] as const;
export type Measure = (typeof measures)[number];
export type HistoryRange = 'hour' | 'day';

export interface HistoryView {
  readonly measure: Measure;
  /** The time of the last point. */
  readonly nowMs: number;
  readonly stepMs: number;
  readonly clusters: readonly HistoryLine[];
  /** Clusters whose past this bearer may not see, and why. */
  readonly hidden: readonly { readonly cluster: string; readonly why: string }[];
}

export interface HistoryLine {
  readonly cluster: string;
  /** Means of each step, the oldest first; null where nothing was read. */
  readonly points: readonly (number | null)[];
}

/** Connections of one service, or to all services of one cluster. */
export interface TrafficView {
  readonly rows: readonly Traffic[];
  /** Rows beyond those that are shown. */
  readonly more: number;
  readonly missing: readonly { readonly cluster: string; readonly why: string }[];
}

/** Between two clusters, of one service, since the proxies began to count. */
export interface Traffic {
  readonly service: string;
  readonly from: string;
  /** The cluster that serves it; empty if that is not known any more. */
  readonly to: string;
  readonly tried: number;
  readonly answered: number;
  readonly refused: number;
  readonly reset: number;
  /** Bytes of clients, and of endpoints. */
  readonly sent: number;
  readonly received: number;
  readonly perSecond: number;
  readonly failedPerSecond: number;
}

export interface FlowsView {
  readonly flows: readonly FlowRow[];
  /** To be given as `after` to get what comes next. */
  readonly next: number;
  /** What is missing among them, in words. */
  readonly losses: readonly string[];
  readonly missing: readonly { readonly cluster: string; readonly why: string }[];
}

export interface FlowRow {
  readonly number: number;
  /** The same for all that is told of one connection. */
  readonly id: string;
  readonly atMs: number | undefined;
  readonly from: string;
  readonly node: string;
  readonly client: string;
  /** `namespace/name`; empty if the cluster knows none with this address. */
  readonly clientPod: string;
  readonly service: string;
  readonly to: string;
  readonly endpoint: string;
  readonly way: string;
  readonly outcome: string;
  readonly answeredAfterMs: number | undefined;
  readonly lastedMs: number | undefined;
  readonly isOpen: boolean;
  /** An Envoy told of it, when it had ended. */
  readonly isOfEnvoy: boolean;
  /** Of HTTP. */
  readonly status: number | undefined;
  readonly sentBytes: number | undefined;
  readonly receivedBytes: number | undefined;
  /** Likely reasons of a failure, most likely first. */
  readonly reasons: readonly string[];
}

/** What a code of doctor means; the same for every reader. */
export interface CodeDoc {
  readonly code: string;
  readonly title: string;
  readonly severity: Severity;
  readonly means: string;
  readonly fix: string;
}
