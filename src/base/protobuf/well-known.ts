// Google's own message types, whose form in JSON is not an object of their fields: durations, wrapped scalars and
// structs. Both ways.

import { type BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { isObject, type JsonObject, setMember } from '../json.ts';
import { type WireReader, wireTypes } from './wire-reader.ts';

const wrappers: Readonly<Record<string, 'bool' | 'string' | 'uint32' | 'uint64' | 'double'>> = {
  'google.protobuf.BoolValue': 'bool',
  'google.protobuf.StringValue': 'string',
  'google.protobuf.UInt32Value': 'uint32',
  'google.protobuf.UInt64Value': 'uint64',
  'google.protobuf.DoubleValue': 'double',
};

/** False for a message that is none of these. */
export function writeWellKnown(
  writer: BinaryWriter,
  name: string,
  value: unknown,
  wrong: (found: unknown) => Error,
): boolean {
  const scalar = wrappers[name];
  if (scalar !== undefined) writeWrapped(writer, scalar, value, wrong);
  else if (name === 'google.protobuf.Duration') writeDuration(writer, value, wrong);
  else if (name === 'google.protobuf.Struct') writeStruct(writer, value, wrong);
  else if (name !== 'google.protobuf.Empty') return false;
  return true;
}

function writeWrapped(
  writer: BinaryWriter,
  scalar: 'bool' | 'string' | 'uint32' | 'uint64' | 'double',
  value: unknown,
  wrong: (found: unknown) => Error,
): void {
  const expected = scalar === 'bool' ? 'boolean' : scalar === 'string' ? 'string' : 'number';
  const isWhole = !scalar.startsWith('uint') || (Number.isSafeInteger(value) && (value as number) >= 0);
  if (typeof value !== expected || !isWhole) throw wrong(value);
  const wireType =
    scalar === 'string' ? WireType.LengthDelimited : scalar === 'double' ? WireType.Bit64 : WireType.Varint;
  writer.tag(1, wireType);
  (writer[scalar] as (value: unknown) => unknown).call(writer, value);
}

function writeDuration(writer: BinaryWriter, value: unknown, wrong: (found: unknown) => Error): void {
  const parts = typeof value === 'string' ? /^(\d{1,12})(?:\.(\d{1,9}))?s$/.exec(value) : null;
  if (parts === null) throw wrong(value);
  writer.tag(1, WireType.Varint).int64(Number(parts[1]));
  const nanos = Number((parts[2] ?? '').padEnd(9, '0'));
  if (nanos !== 0) writer.tag(2, WireType.Varint).int32(nanos);
}

function writeStruct(writer: BinaryWriter, value: unknown, wrong: (found: unknown) => Error): void {
  if (!isObject(value)) throw wrong(value);
  for (const key of Object.keys(value).sort()) {
    writer.tag(1, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.LengthDelimited).string(key);
    writer.tag(2, WireType.LengthDelimited).fork();
    writeStructValue(writer, value[key], wrong);
    writer.join().join();
  }
}

function writeStructValue(writer: BinaryWriter, value: unknown, wrong: (found: unknown) => Error): void {
  if (value === null) writer.tag(1, WireType.Varint).int32(0);
  else if (typeof value === 'number') writer.tag(2, WireType.Bit64).double(value);
  else if (typeof value === 'string') writer.tag(3, WireType.LengthDelimited).string(value);
  else if (typeof value === 'boolean') writer.tag(4, WireType.Varint).bool(value);
  else if (isObject(value)) {
    writer.tag(5, WireType.LengthDelimited).fork();
    writeStruct(writer, value, wrong);
    writer.join();
  } else if (Array.isArray(value)) {
    writer.tag(6, WireType.LengthDelimited).fork();
    for (const item of value) {
      writer.tag(1, WireType.LengthDelimited).fork();
      writeStructValue(writer, item, wrong);
      writer.join();
    }
    writer.join();
  } else throw wrong(value);
}

/** Undefined for a message that is none of these. */
export function readWellKnown(name: string, reader: WireReader, depth: number): { value: unknown } | undefined {
  const scalar = wrappers[name];
  if (scalar !== undefined) return { value: readWrapped(reader, scalar) };
  if (name === 'google.protobuf.Duration') return { value: readDuration(reader) };
  if (name === 'google.protobuf.Struct') return { value: readStruct(reader, depth) };
  return undefined;
}

function readWrapped(reader: WireReader, scalar: 'bool' | 'string' | 'uint32' | 'uint64' | 'double'): unknown {
  let value: unknown = scalar === 'bool' ? false : scalar === 'string' ? '' : 0;
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (number !== 1) reader.skip(wireType);
    else if (scalar === 'string') value = reader.string();
    else if (scalar === 'bool') value = reader.bool();
    else value = scalar === 'double' ? reader.double() : reader.int64();
  }
  return value;
}

function readDuration(reader: WireReader): string {
  let [seconds, nanos] = [0, 0];
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (number === 1 && wireType === wireTypes.varint) seconds = reader.int64();
    else if (number === 2 && wireType === wireTypes.varint) nanos = reader.int32();
    else reader.skip(wireType);
  }
  const fraction = nanos === 0 ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;
  return `${seconds}${fraction}s`;
}

/** Deeper than this a struct from outside is cut off. */
const structDepthMax = 16;

function readStruct(reader: WireReader, depth: number): JsonObject {
  const object: JsonObject = {};
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (number !== 1 || wireType !== wireTypes.bytes) {
      reader.skip(wireType);
      continue;
    }
    const entry = reader.nested();
    let key = '';
    let value: unknown = null;
    while (entry.hasMore()) {
      const tag = entry.tag();
      if (tag.number === 1) key = entry.string();
      else if (tag.number === 2) value = readStructValue(entry.nested(), depth + 1);
      else entry.skip(tag.wireType);
    }
    setMember(object, key, value);
  }
  return object;
}

function readStructValue(reader: WireReader, depth: number): unknown {
  let value: unknown = null;
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (number === 2) value = reader.double();
    else if (number === 3) value = reader.string();
    else if (number === 4) value = reader.bool();
    else if (number === 5 && depth < structDepthMax) value = readStruct(reader.nested(), depth + 1);
    else if (number === 6 && depth < structDepthMax) value = readList(reader.nested(), depth + 1);
    else reader.skip(wireType);
  }
  return value;
}

function readList(reader: WireReader, depth: number): unknown[] {
  const items: unknown[] = [];
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (number === 1) items.push(readStructValue(reader.nested(), depth + 1));
    else reader.skip(wireType);
  }
  return items;
}
