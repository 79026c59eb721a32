// The order in which clients should prefer versions: v2, v1, v1beta2, v1beta1, v1alpha1, then other names in the order
// of text.

interface Parsed {
  readonly major: number;
  /** 3 for a release, 2 for beta, 1 for alpha. */
  readonly stability: number;
  readonly minor: number;
}

export function compareVersions(a: string, b: string): number {
  const first = parseVersion(a);
  const second = parseVersion(b);
  if (first === undefined || second === undefined) {
    if (first !== undefined) return -1;
    if (second !== undefined) return 1;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  return second.stability - first.stability || second.major - first.major || second.minor - first.minor;
}

function parseVersion(text: string): Parsed | undefined {
  const match = /^v(\d{1,9})(?:(alpha|beta)(\d{1,9}))?$/.exec(text);
  if (match === null) return undefined;
  const stability = match[2] === undefined ? 3 : match[2] === 'beta' ? 2 : 1;
  return { major: Number(match[1]), stability, minor: Number(match[3] ?? 0) };
}
