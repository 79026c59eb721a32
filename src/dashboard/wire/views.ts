// Answers to single questions of the page: a service, the answer to a name, a plan, figures of parts. Types only;
// times are milliseconds since 1970.

import type { Standing } from './rows.ts';

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
  readonly standing: Standing;
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
  readonly traffic: { readonly standing: Standing; readonly says: string };
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
