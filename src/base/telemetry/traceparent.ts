// Where a span stands in its trace, as one text: the header `traceparent` of W3C Trace Context, version 00. It travels in records
// that other clusters wrote, so whatever is not exactly that is none. Pure.

export interface SpanPlace {
  /** 32 and 16 hexadecimal digits. */
  readonly traceId: string;
  readonly spanId: string;
  /** Whether the spans of this trace are sent. */
  readonly isSampled: boolean;
}

const form = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const zeros = /^0+$/;

export function parseTraceparent(text: unknown): SpanPlace | undefined {
  const found = typeof text === 'string' ? form.exec(text) : null;
  if (found === null) return undefined;
  const [, traceId = '', spanId = '', flags = ''] = found;
  if (zeros.test(traceId) || zeros.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function formatTraceparent({ traceId, spanId, isSampled }: SpanPlace): string {
  return `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}`;
}
