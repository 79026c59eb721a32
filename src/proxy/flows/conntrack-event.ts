// Reads lines of `conntrack -E -o id,timestamp`. Pure.

export interface ConntrackEvent {
  readonly kind: 'NEW' | 'UPDATE' | 'DESTROY';
  readonly atMs: number;
  /** The kernel gives it to another connection later. */
  readonly id: string;
  readonly protocol: string;
  readonly state?: string;
  readonly isReplied: boolean;
  readonly original: Tuple;
  /** As the endpoint answers. */
  readonly reply: Tuple;
}

export interface Tuple {
  readonly source: string;
  readonly destination: string;
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly packets?: number;
  readonly bytes?: number;
}

const head = /^\[(\d+\.\d+)\]\s+\[(NEW|UPDATE|DESTROY)\] (\w+)\s+\d+ (?:\d+ )?(?:([A-Z_]+) )?/;
const tuple = String.raw`src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+)(?: packets=(\d+) bytes=(\d+))?`;
const line = new RegExp(`${tuple} (\\[UNREPLIED\\] )?${tuple}.*? id=(\\d+)`);
const lineMax = 1_000;

/** Undefined for what is none, and for protocols without ports. */
export function parseConntrackEvent(text: string): ConntrackEvent | undefined {
  if (text.length > lineMax) return undefined;
  const start = head.exec(text);
  const rest = start === null ? null : line.exec(text);
  if (start === null || rest === null) return undefined;
  const [, seconds, kind, protocol, state] = start;
  return {
    kind: kind as ConntrackEvent['kind'],
    atMs: Math.round(Number(seconds) * 1_000_000) / 1000,
    id: rest[14]!,
    protocol: protocol!,
    ...(state === undefined ? {} : { state }),
    isReplied: rest[7] === undefined,
    original: tupleOf(rest, 1),
    reply: tupleOf(rest, 8),
  };
}

function tupleOf(parts: RegExpExecArray, at: number): Tuple {
  const counted = parts[at + 4] === undefined ? {} : { packets: Number(parts[at + 4]), bytes: Number(parts[at + 5]) };
  return {
    source: parts[at]!,
    destination: parts[at + 1]!,
    sourcePort: Number(parts[at + 2]),
    destinationPort: Number(parts[at + 3]),
    ...counted,
  };
}
