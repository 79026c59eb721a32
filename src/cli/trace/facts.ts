// The facts that `portolan trace` has read along the way of one service, or the reasons why it could not. Pure.

import type { PairReach } from '../../clusterset/rules/networks/pairs.ts';
import type { Read } from '../../doctor/facts.ts';

/** A step that has happened: when, RFC 3339, and what it left. */
export interface Mark {
  readonly at: string | undefined;
  readonly detail: string;
}

export interface ExporterHome {
  /** Undefined if there is none. */
  readonly export: (Mark & { readonly problem: string }) | undefined;
  readonly endpoints: (Mark & { readonly ready: number }) | undefined;
}

export interface ExporterFacts {
  readonly cluster: string;
  readonly home: Read<ExporterHome>;
  /** At the broker; undefined if there is none. */
  readonly record: (Mark & { readonly ready: number }) | undefined;
  /** Why it is not counted at present; empty if it is. */
  readonly leftOut: string;
}

export interface ImporterFacts {
  /** Undefined if there is none. */
  readonly import: (Mark & { readonly clusters: readonly string[] }) | undefined;
  readonly slices: ReadonlyMap<string, Mark & { readonly ready: number }>;
  readonly answers: readonly {
    readonly resolver: string;
    readonly answer: Read<Mark & { readonly isRight: boolean }>;
  }[];
  /** How the asking cluster reaches each other one; none where all share one network. */
  readonly pairs: readonly PairReach[];
  /** Whether connections to it are carried: the condition of the import, and one connection from each proxy. */
  readonly carried: Mark & { readonly isReady: boolean };
  readonly connections: readonly {
    readonly from: string;
    readonly result: Read<Mark & { readonly problems: string }>;
  }[];
}

export interface TraceFacts {
  readonly service: string;
  readonly from: string;
  readonly exporters: readonly ExporterFacts[];
  /** The merged view; undefined if there is none. */
  readonly merged: Mark | undefined;
  readonly importer: Read<ImporterFacts>;
}
