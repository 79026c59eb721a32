// Journal rows as two flat buffers, which move between threads without being copied: five numbers a row, and the bytes
// of keys and values one after the other.

import type { JournalRow } from '../journal.ts';

/** row, revision, createRevision, length of the key, length of the value (-1: a deletion). */
const numbersPerRow = 5;

export interface PackedRows {
  readonly numbers: Float64Array<ArrayBuffer>;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A row whose key is still UTF-8 bytes; key and value are views into the packed bytes. */
export interface RawRow {
  readonly row: number;
  readonly revision: number;
  readonly createRevision: number;
  readonly key: Uint8Array;
  readonly value: Uint8Array | undefined;
}

export function packRows(rows: readonly JournalRow[]): PackedRows {
  return packRawRows(rows.map((row) => ({ ...rawOf(row), key: Buffer.from(row.key) })));
}

export function packRawRows(rows: readonly RawRow[]): PackedRows {
  const numbers = new Float64Array(rows.length * numbersPerRow);
  const bytes = new Uint8Array(rows.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0));
  let offset = 0;
  rows.forEach(({ row, revision, createRevision, key, value }, index) => {
    numbers.set([row, revision, createRevision, key.length, value?.length ?? -1], index * numbersPerRow);
    bytes.set(key, offset);
    if (value !== undefined) bytes.set(value, offset + key.length);
    offset += key.length + (value?.length ?? 0);
  });
  return { numbers, bytes };
}

export function* unpackRawRows({ numbers, bytes }: PackedRows): Iterable<RawRow> {
  let offset = 0;
  for (let index = 0; index < numbers.length; index += numbersPerRow) {
    const key = bytes.subarray(offset, (offset += numbers[index + 3]!));
    const valueLength = numbers[index + 4]!;
    const value = valueLength < 0 ? undefined : bytes.subarray(offset, (offset += valueLength));
    yield { row: numbers[index]!, revision: numbers[index + 1]!, createRevision: numbers[index + 2]!, key, value };
  }
}

/** The rows with values in buffers of their own, so that the packed bytes can go. */
export function* unpackRows(packed: PackedRows): Iterable<JournalRow> {
  const text = Buffer.from(packed.bytes.buffer);
  for (const raw of unpackRawRows(packed)) {
    const key = text.toString('utf8', raw.key.byteOffset, raw.key.byteOffset + raw.key.byteLength);
    yield { ...rawOf(raw), key, value: raw.value?.slice() };
  }
}

function rawOf<Row extends Omit<RawRow, 'key'>>({ row, revision, createRevision, value }: Row) {
  return { row, revision, createRevision, value };
}
