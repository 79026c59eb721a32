// The client's cluster in an EDNS option of the local range: a version byte, then type-length-value with
// cluster, zone, region and hops. A bare cluster name is read too. Pure.

export interface SourceCluster {
  readonly cluster: string;
  readonly zone?: string;
  readonly region?: string;
  /** How many servers have passed this query on. */
  readonly hops: number;
  /** Marks of the servers that have passed it on, if they leave any: eight hexadecimal digits each. */
  readonly passed?: readonly string[];
}

const version = 1;
const markBytes = 4;
const field = { cluster: 1, zone: 2, region: 3, hops: 4, passed: 5 } as const;
/** More servers in a row than any federation has: a loop. */
export const hopsMax = 8;

export function encodeSource(source: SourceCluster): Uint8Array {
  const parts: number[] = [version];
  const text = (type: number, value: string | undefined) => {
    if (value === undefined || value === '') return;
    const bytes = Buffer.from(value).subarray(0, 255);
    parts.push(type, bytes.length, ...bytes);
  };
  text(field.cluster, source.cluster);
  text(field.zone, source.zone);
  text(field.region, source.region);
  parts.push(field.hops, 1, Math.min(255, source.hops));
  const marks = Buffer.from((source.passed ?? []).slice(-hopsMax).join(''), 'hex');
  if (marks.length > 0) parts.push(field.passed, marks.length, ...marks);
  return Uint8Array.from(parts);
}

/** Undefined if the bytes say nothing that can be read. Unknown fields are skipped: later versions may add some. */
export function decodeSource(bytes: Uint8Array): SourceCluster | undefined {
  if (bytes.length === 0) return undefined;
  if (bytes[0]! >= 0x20) return decodeBareName(bytes);
  if (bytes[0] !== version) return undefined;
  const texts: Record<number, string> = {};
  let hops = 0;
  let passed: string[] = [];
  for (let at = 1; at < bytes.length; ) {
    const type = bytes[at]!;
    const length = bytes[at + 1];
    if (length === undefined || at + 2 + length > bytes.length) return undefined;
    const value = bytes.subarray(at + 2, at + 2 + length);
    if (type === field.hops) hops = value[0] ?? 0;
    else if (type === field.passed) passed = marksIn(value);
    else texts[type] = Buffer.from(value).toString('utf8');
    at += 2 + length;
  }
  const source = { cluster: texts[field.cluster] ?? '', zone: texts[field.zone], region: texts[field.region], hops };
  return passed.length === 0 ? source : { ...source, passed };
}

function marksIn(value: Uint8Array): string[] {
  const marks: string[] = [];
  for (let at = 0; at + markBytes <= value.length && marks.length < hopsMax; at += markBytes) {
    marks.push(Buffer.from(value.subarray(at, at + markBytes)).toString('hex'));
  }
  return marks;
}

function decodeBareName(bytes: Uint8Array): SourceCluster | undefined {
  try {
    return { cluster: new TextDecoder('utf-8', { fatal: true }).decode(bytes), hops: 0 };
  } catch {
    return undefined;
  }
}
