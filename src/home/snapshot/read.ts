// Reads a whole snapshot and verifies all of it: the envelope, every entry, and the version that wrote it.

import { version } from '../../base/version.ts';
import { type ContentListener, ContentReader, type SnapshotFacts } from './content.ts';
import { openEnvelope, wrongKey } from './envelope.ts';
import { SnapshotError } from './snapshot-error.ts';

export interface ReadOptions extends Partial<ContentListener> {
  readonly secret?: string | undefined;
  /** The payload as it is inside the envelope. */
  readonly onPayload?: (bytes: Uint8Array) => void;
  readonly ownVersion?: string;
}

export type ReadSnapshot =
  | { readonly kind: 'read'; readonly facts: SnapshotFacts; readonly entries: number; readonly isEncrypted: boolean }
  /** It is whole, and encrypted with a key that was not given. */
  | { readonly kind: 'sealed' };

/** Hands on as it reads: only when this resolves was all of it good. */
export async function readSnapshot(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  options: ReadOptions,
): Promise<ReadSnapshot> {
  const { secret, onEntry, ownVersion = version } = options;
  let hasHead = false;
  const reader = new ContentReader({
    onEntry,
    onHead: (head) => {
      hasHead = true;
      refuseNewer(head, ownVersion);
      options.onHead?.(head);
    },
  });
  const onPayload = (bytes: Uint8Array) => {
    if (bytes.length === 0) return;
    try {
      reader.push(bytes);
    } catch (error) {
      // What a wrong key makes of the bytes is not JSON; the tag that would show it comes at the end.
      if (secret !== undefined && !hasHead) throw wrongKey();
      throw error;
    }
    options.onPayload?.(bytes);
  };
  const { isEncrypted } = await openEnvelope(chunks, { secret, onPayload });
  if (isEncrypted && secret === undefined) return { kind: 'sealed' };
  const { files: _files, ...facts } = reader.end();
  return { kind: 'read', facts, entries: reader.count, isEncrypted };
}

function refuseNewer({ portolan }: SnapshotFacts, own: string): void {
  if (!isNewer(portolan, own)) return;
  throw new SnapshotError(`portolan ${portolan} took it, and this is ${own}; use ${portolan} or a newer one`);
}

/** By major and minor version: patches do not change what is stored. */
function isNewer(other: string, own: string): boolean {
  const [otherMajor = 0, otherMinor = 0] = other.split('.').map(Number);
  const [ownMajor = 0, ownMinor = 0] = own.split('.').map(Number);
  return otherMajor !== ownMajor ? otherMajor > ownMajor : otherMinor > ownMinor;
}

/** `after` is awaited when a piece was taken in. */
export async function* paced(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  after: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    yield chunk;
    await after();
  }
}
