// The bytes of a watch as events: one JSON object a line, lines split over chunks in any way. Linear in the bytes: a
// line that spans many chunks is joined once, when its end has come.

import type { KubernetesObject } from '../objects/object.ts';
import { parseWithoutNulls } from './foreign.ts';

export interface StatusLike {
  readonly kind?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly object: KubernetesObject }
  | { readonly type: 'ERROR'; readonly object: StatusLike };

const newline = 0x0a;
/** Far above any object a home would store; a peer that sends no newline must not fill our memory. */
const lineBytesMax = 64 * 1024 * 1024;

export async function* decodeWatch<T extends KubernetesObject>(
  chunks: AsyncIterable<Uint8Array>,
  what: string,
): AsyncGenerator<WatchEvent<T>> {
  for await (const line of splitLines(chunks, what)) {
    if (line.length > 0) yield parseEvent<T>(line, what);
  }
}

export async function* splitLines(chunks: AsyncIterable<Uint8Array>, what: string): AsyncGenerator<string> {
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      pending.push(chunk.subarray(start, end));
      yield textOf(pending);
      pending = [];
      pendingBytes = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    pending.push(chunk.subarray(start));
    pendingBytes += chunk.length - start;
    if (pendingBytes > lineBytesMax) throw new Error(`${what}: an event is longer than ${lineBytesMax} bytes`);
  }
  // A last line without its newline was cut off in transit: the event is not complete, so it has not happened.
}

function textOf(parts: readonly Uint8Array[]): string {
  const only = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  return Buffer.from(only.buffer, only.byteOffset, only.byteLength).toString('utf8');
}

function parseEvent<T>(line: string, what: string): WatchEvent<T> {
  try {
    const event = parseWithoutNulls(line) as WatchEvent<T>;
    if (typeof event.type === 'string' && typeof event.object === 'object' && event.object !== null) return event;
  } catch (cause) {
    throw new Error(`${what}: not JSON: ${line.slice(0, 200)}`, { cause });
  }
  throw new Error(`${what}: not a watch event: ${line.slice(0, 200)}`);
}
