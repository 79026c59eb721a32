// The trace of an export travels with its records: an annotation of the shard at the broker, and of the imports that are made of
// it. A ServiceExport may bring one along, such as that of the pipeline that applied it. Pure.

import { parseTraceparent } from './traceparent.ts';

export const traceparentAnnotation = 'portolan.dev/traceparent';

type Annotated = { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | null } };

/** Undefined unless there is a well-formed one: anybody may have written it. */
export function carriedTrace(object: Annotated | undefined): string | undefined {
  const text = object?.metadata.annotations?.[traceparentAnnotation];
  return parseTraceparent(text) === undefined ? undefined : text;
}

export function traceAnnotations(traceparent: string | undefined): Record<string, string> {
  return traceparent === undefined ? {} : { [traceparentAnnotation]: traceparent };
}
