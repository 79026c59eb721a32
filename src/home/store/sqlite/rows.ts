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
  const numbers = new Float64Array(rows.length * numbersPerRow);
  let sizeBytes = 0;
  for (const [index, row] of rows.entries()) {
    const keyBytes = Buffer.byteLength(row.key);
    setNumbers(numbers, index, row, keyBytes);
    sizeBytes += keyBytes + (row.value?.length ?? 0);
  }
  const bytes = new Uint8Array(sizeBytes);
  const buffer = Buffer.from(bytes.buffer);
  let offset = 0;
  for (const { key, value } of rows) {
    offset += buffer.write(key, offset);
    if (value === undefined) continue;
    bytes.set(value, offset);
    offset += value.length;
  }
  return { numbers, bytes };
}

export function packRawRows(rows: readonly RawRow[]): PackedRows {
  const numbers = new Float64Array(rows.length * numbersPerRow);
  const bytes = new Uint8Array(rows.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0));
  let offset = 0;
  for (const [index, raw] of rows.entries()) {
    const { key, value } = raw;
    setNumbers(numbers, index, raw, key.length);
    bytes.set(key, offset);
    if (value !== undefined) bytes.set(value, offset + key.length);
    offset += key.length + (value?.length ?? 0);
  }
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

/** The rows, with values that are views into the packed bytes. Makes nothing else: at start it runs for every row there
 *  is. */
export function unpackRows({ numbers, bytes }: PackedRows, take: (row: JournalRow) => void): void {
  const text = Buffer.from(bytes.buffer);
  let offset = 0;
  for (let index = 0; index < numbers.length; index += numbersPerRow) {
    const key = text.toString('utf8', offset, (offset += numbers[index + 3]!));
    const valueLength = numbers[index + 4]!;
    const value = valueLength < 0 ? undefined : bytes.subarray(offset, (offset += valueLength));
    take({ row: numbers[index]!, revision: numbers[index + 1]!, createRevision: numbers[index + 2]!, key, value });
  }
}

function setNumbers(numbers: Float64Array, index: number, row: Omit<RawRow, 'key'>, keyBytes: number): void {
  const start = index * numbersPerRow;
  numbers[start] = row.row;
  numbers[start + 1] = row.revision;
  numbers[start + 2] = row.createRevision;
  numbers[start + 3] = keyBytes;
  numbers[start + 4] = row.value?.length ?? -1;
}
