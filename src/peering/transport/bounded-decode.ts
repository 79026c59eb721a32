// Decodes a message of a peer whose number of fields is bounded. A megabyte of empty items is half a million objects: making
// them would hold up all other peers, so they are counted first. Pure.

import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** A service with 20,000 endpoints has as many. */
const valuesMax = 60_000;
const depthMax = 32;
/** Fields that the schema does not have are skipped, not kept. */
const options = { readUnknownFields: false } as const;

/** Throws on bytes that cannot be read, and on too many fields. */
export function decodeBounded<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> {
  count(schema, new BinaryReader(bytes), { end: bytes.length, depth: 0, values: { left: valuesMax } });
  return fromBinary(schema, bytes, options);
}

/** By schema: each item of a message asks for it. */
const nestedOf = new WeakMap<DescMessage, ReadonlyMap<number, DescMessage | undefined>>();

function nestedIn(schema: DescMessage): ReadonlyMap<number, DescMessage | undefined> {
  const known = nestedOf.get(schema);
  if (known !== undefined) return known;
  const nested = new Map(schema.fields.map((field) => [field.number, field.message]));
  nestedOf.set(schema, nested);
  return nested;
}

interface Counting {
  readonly end: number;
  readonly depth: number;
  /** Shared with nested messages. */
  readonly values: { left: number };
}

function count(schema: DescMessage, reader: BinaryReader, { end, depth, values }: Counting): void {
  if (depth > depthMax) throw new Error(`messages are nested more than ${depthMax} deep`);
  const nested = nestedIn(schema);
  while (reader.pos < end) {
    if (--values.left < 0) throw new Error(`it has more than ${valuesMax} fields and items`);
    const [number, wireType] = reader.tag();
    const inner = nested.get(number);
    if (inner === undefined || wireType !== WireType.LengthDelimited) reader.skip(wireType, number);
    else {
      const length = reader.uint32();
      count(inner, reader, { end: reader.pos + length, depth: depth + 1, values });
    }
  }
}
