// The key of an audience: when it is kept, given to more readers, or replaced by a new one, and for which place it is sealed.
// A reader that goes, or has another key, means a new key. Pure.

import type { SealedReader, SealedRecord } from '../../kinds/sealed-record.ts';

export interface AudienceKey {
  readonly epoch: number;
  readonly key: Uint8Array;
}

export interface KeyFacts {
  readonly present: SealedRecord | undefined;
  /** The key in `present`; undefined if it could not be opened. */
  readonly known: AudienceKey | undefined;
  /** The highest epoch that this cluster knows of: readers refuse lower ones. */
  readonly epochSeen: number;
  /** Fingerprints of the keys of those who may read, by cluster. */
  readonly readers: ReadonlyMap<string, string>;
  readonly nowSeconds: number;
  readonly rotateSeconds: number;
  /** Keys made before this second are replaced, by command. */
  readonly rotateBefore: number;
}

export type KeyStep =
  | { readonly kind: 'keep'; readonly key: AudienceKey }
  /** The same key for those who have none of it yet. */
  | { readonly kind: 'extend'; readonly key: AudienceKey; readonly kept: readonly SealedReader[] }
  | { readonly kind: 'replace'; readonly epoch: number };

export function planKey(facts: KeyFacts): KeyStep {
  const { present, known, readers, nowSeconds } = facts;
  const epochBefore = Math.max(present?.spec.epoch ?? 0, known?.epoch ?? 0, facts.epochSeen);
  const replaced: KeyStep = { kind: 'replace', epoch: Math.max(nowSeconds, epochBefore + 1, commanded(facts)) };
  if (present === undefined || known === undefined || known.epoch !== present.spec.epoch) return replaced;
  if (isKeyDue(known.epoch, facts)) return replaced;
  const there = present.spec.readers ?? [];
  if (there.some(({ cluster, fingerprint }) => readers.get(cluster) !== fingerprint)) return replaced;
  if (there.length === readers.size) return { kind: 'keep', key: known };
  return { kind: 'extend', key: known, kept: there };
}

type Rotation = Pick<KeyFacts, 'nowSeconds' | 'rotateSeconds' | 'rotateBefore'>;

export function isKeyDue(epoch: number, rotation: Rotation): boolean {
  return epoch < commanded(rotation) || rotation.nowSeconds - epoch >= rotation.rotateSeconds;
}

/** The clock of who gave the command may be ahead; one that makes no sense commands nothing. */
function commanded({ nowSeconds, rotateBefore }: Rotation): number {
  return rotateBefore <= nowSeconds + aheadSecondsMax ? rotateBefore : 0;
}

const aheadSecondsMax = 24 * 3600;

export interface KeyPlace {
  readonly clusterset: string;
  readonly exporter: string;
  readonly audience: string;
  readonly epoch: number;
  readonly reader: string;
}

/** What the sealed key is bound to. */
export function keyInfo({ clusterset, exporter, audience, epoch, reader }: KeyPlace): Uint8Array {
  return Buffer.from(JSON.stringify(['portolan.dev/sealing-key/v1', clusterset, exporter, audience, epoch, reader]));
}
