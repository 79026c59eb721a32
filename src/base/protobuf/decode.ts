// From the bytes of a message to its value in proto3's JSON, over a table of messages. The bytes are untrusted:
// unreadable ones throw a MalformedError, and fields that the table does not have are skipped.

import { setMember } from '../json.ts';
import type { Field, FieldType, Schema } from './schema.ts';
import { readWellKnown } from './well-known.ts';
import { expectWireType, MalformedError, type WireReader, wireTypes } from './wire-reader.ts';

type Fields = Record<string, unknown>;

const depthMax = 64;

export function decodeMessage(schema: Schema, name: string, reader: WireReader, depth = 0): Fields {
  if (depth > depthMax) throw new MalformedError(`messages are nested more than ${depthMax} deep`);
  const message = schema.message(name);
  const into: Fields = {};
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    const field = message?.byNumber.get(number);
    if (field === undefined) reader.skip(wireType);
    else decodeField(schema, field, wireType, reader, depth, into);
  }
  return into;
}

function decodeField(
  schema: Schema,
  field: Field,
  wireType: number,
  reader: WireReader,
  depth: number,
  into: Fields,
): void {
  const { name, shape, type } = field;
  if (shape === 'single') into[name] = decodeValue(schema, type, wireType, reader, depth);
  else if (shape === 'map') decodeEntry(schema, type, wireType, reader, depth, (into[name] ??= {}) as Fields);
  else {
    const list = (into[name] ??= []) as unknown[];
    const bare = bareWireType(type);
    if (wireType === bare || wireType !== wireTypes.bytes) {
      list.push(decodeValue(schema, type, wireType, reader, depth));
      return;
    }
    const packed = reader.nested();
    while (packed.hasMore()) list.push(decodeValue(schema, type, bare, packed, depth));
  }
}

function decodeEntry(
  schema: Schema,
  type: FieldType,
  wireType: number,
  reader: WireReader,
  depth: number,
  into: Fields,
): void {
  expectWireType(wireType, wireTypes.bytes);
  const entry = reader.nested();
  let key = '';
  let value: unknown = type.kind === 'message' ? {} : '';
  while (entry.hasMore()) {
    const tag = entry.tag();
    if (tag.number === 1) key = entry.string();
    else if (tag.number === 2) value = decodeValue(schema, type, tag.wireType, entry, depth);
    else entry.skip(tag.wireType);
  }
  setMember(into, key, value);
}

function decodeValue(schema: Schema, type: FieldType, wireType: number, reader: WireReader, depth: number): unknown {
  expectWireType(wireType, bareWireType(type));
  if (type.kind === 'message') return decodeNested(schema, type.name, reader.nested(), depth + 1);
  if (type.kind === 'enum') {
    const number = reader.int32();
    return schema.enum(type.name).byNumber.get(number) ?? number;
  }
  switch (type.scalar) {
    case 'string':
      return reader.string();
    case 'bytes':
      return Buffer.from(reader.slice()).toString('base64');
    case 'bool':
      return reader.bool();
    case 'double':
      return reader.double();
    case 'float':
      return reader.float();
    default:
      return type.scalar === 'int32' ? reader.int32() : reader.int64();
  }
}

function decodeNested(schema: Schema, name: string, reader: WireReader, depth: number): unknown {
  if (name === 'google.protobuf.Any') return decodeAny(schema, reader, depth);
  const special = readWellKnown(name, reader, depth);
  return special === undefined ? decodeMessage(schema, name, reader, depth) : special.value;
}

function decodeAny(schema: Schema, reader: WireReader, depth: number): Fields {
  let url = '';
  let content: WireReader | undefined;
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (number === 1) url = reader.string();
    else if (number === 2) content = reader.nested();
    else reader.skip(wireType);
  }
  const name = url.slice(url.lastIndexOf('/') + 1);
  if (content === undefined) return { '@type': url };
  const special = readWellKnown(name, content, depth);
  if (special !== undefined) return { '@type': url, value: special.value };
  return { '@type': url, ...decodeMessage(schema, name, content, depth + 1) };
}

function bareWireType(type: FieldType): number {
  if (type.kind === 'message') return wireTypes.bytes;
  if (type.kind === 'enum') return wireTypes.varint;
  if (type.scalar === 'string' || type.scalar === 'bytes') return wireTypes.bytes;
  if (type.scalar === 'double') return wireTypes.fixed64;
  return type.scalar === 'float' ? wireTypes.fixed32 : wireTypes.varint;
}
