// The steps of the way of an export, as spans and as `portolan trace` name them. Where a step stands travels in the records, so that
// all processes tell of one trace. Pure.

import type { TraceSpan, Tracing } from '../world.ts';

/** In the order of the way. */
export type TraceStep =
  | 'export'
  | 'endpoints'
  | 'record'
  | 'merged'
  | 'import'
  | 'slices'
  | 'hop'
  | 'answer'
  | 'carried'
  | 'connection';

export interface StepStart {
  /** Where it happens. */
  readonly cluster: string;
  readonly service: { readonly namespace: string; readonly name: string };
  readonly parent: string | undefined;
  readonly startMs: number;
}

export function beginStep(tracing: Tracing, step: TraceStep, { cluster, service, ...start }: StepStart): TraceSpan {
  const attributes = {
    'portolan.cluster': cluster,
    'k8s.namespace.name': service.namespace,
    'portolan.service': service.name,
  };
  return tracing.begin(step, { ...start, attributes });
}
