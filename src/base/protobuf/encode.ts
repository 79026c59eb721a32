// From a value in proto3's JSON to its bytes, over a table of messages. Fields are written in the order of their
// numbers and maps in the order of their keys, so equal values give equal bytes. A field that the table does not have,
// or a value of the wrong type, is an EncodeError with its path.

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { isObject, type JsonObject } from '../json.ts';
import type { Field, FieldType, Message, Scalar, Schema } from './schema.ts';
import { writeWellKnown } from './well-known.ts';

class EncodeError extends Error {}

export const typeUrlPrefix = 'type.googleapis.com/';

export function encodeMessage(schema: Schema, name: string, value: unknown): Uint8Array {
  const writer = new BinaryWriter();
  new Encoder(schema, writer).message(name, value, name);
  return writer.finish();
}

/** `google.protobuf.Any` of a message. */
export function encodeAny(schema: Schema, name: string, value: unknown): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.LengthDelimited).string(typeUrlPrefix + name);
  writer.tag(2, WireType.LengthDelimited).bytes(encodeMessage(schema, name, value));
  return writer.finish();
}

class Encoder {
  readonly #schema: Schema;
  readonly #writer: BinaryWriter;

  constructor(schema: Schema, writer: BinaryWriter) {
    this.#schema = schema;
    this.#writer = writer;
  }

  message(name: string, value: unknown, path: string): void {
    if (name === 'google.protobuf.Any') return this.#any(value, path);
    if (writeWellKnown(this.#writer, name, value, (found) => wrong(path, name, found))) return;
    const message = this.#schema.message(name);
    if (message === undefined) throw new EncodeError(`${path}: message ${name} is not in the table`);
    if (!isObject(value)) throw wrong(path, name, value);
    this.#fields(message, value, path);
  }

  #fields(message: Message, value: JsonObject, path: string): void {
    const present: [Field, unknown][] = [];
    for (const key of Object.keys(value)) {
      const field = message.byName.get(key);
      if (field === undefined) throw new EncodeError(`${path}.${key}: ${message.name} has no such field`);
      if (value[key] !== undefined) present.push([field, value[key]]);
    }
    present.sort(([one], [other]) => one.number - other.number);
    for (const [field, content] of present) this.#field(field, content, `${path}.${field.name}`);
  }

  #field(field: Field, value: unknown, path: string): void {
    if (field.shape === 'single') return this.#value(field.number, field.type, value, path);
    if (field.shape === 'map') return this.#map(field, value, path);
    if (!Array.isArray(value)) throw wrong(path, 'a list', value);
    if (isPacked(field.type)) return this.#packed(field, value, path);
    for (const [index, item] of value.entries()) this.#value(field.number, field.type, item, `${path}[${index}]`);
  }

  #map({ number, type }: Field, value: unknown, path: string): void {
    if (!isObject(value)) throw wrong(path, 'an object', value);
    for (const key of Object.keys(value).sort()) {
      this.#nested(number, () => {
        this.#writer.tag(1, WireType.LengthDelimited).string(key);
        this.#value(2, type, value[key], `${path}[${key}]`);
      });
    }
  }

  #packed({ number, type }: Field, values: readonly unknown[], path: string): void {
    if (values.length === 0) return;
    this.#nested(number, () => {
      for (const [index, item] of values.entries()) this.#bare(type, item, `${path}[${index}]`);
    });
  }

  #value(number: number, type: FieldType, value: unknown, path: string): void {
    if (type.kind === 'message') return this.#nested(number, () => this.message(type.name, value, path));
    this.#writer.tag(number, type.kind === 'enum' ? WireType.Varint : wireTypes[type.scalar]);
    this.#bare(type, value, path);
  }

  #bare(type: FieldType, value: unknown, path: string): void {
    if (type.kind === 'enum') this.#enum(type.name, value, path);
    else if (type.kind === 'scalar') writeScalar(this.#writer, type.scalar, value, path);
  }

  #enum(name: string, value: unknown, path: string): void {
    const number = typeof value === 'string' ? this.#schema.enum(name).byName.get(value) : undefined;
    if (number === undefined) throw wrong(path, `a value of ${name}`, value);
    this.#writer.int32(number);
  }

  #any(value: unknown, path: string): void {
    if (!isObject(value) || typeof value['@type'] !== 'string') throw wrong(path, 'an object with @type', value);
    const { '@type': url, ...fields } = value;
    const name = (url as string).slice((url as string).lastIndexOf('/') + 1);
    this.#writer.tag(1, WireType.LengthDelimited).string(url as string);
    this.#nested(2, () => this.message(name, contentOf(name, fields), `${path}<${name}>`));
  }

  #nested(number: number, write: () => void): void {
    this.#writer.tag(number, WireType.LengthDelimited).fork();
    write();
    this.#writer.join();
  }
}

// JSON has a special form for Google's own types; in an Any that form lies in a member `value`.
function contentOf(name: string, fields: JsonObject): unknown {
  const isSpecial = name.startsWith('google.protobuf.') && name !== 'google.protobuf.Empty';
  return isSpecial ? fields['value'] : fields;
}

function isPacked(type: FieldType): boolean {
  return type.kind === 'enum' || (type.kind === 'scalar' && type.scalar !== 'string' && type.scalar !== 'bytes');
}

const wireTypes: Readonly<Record<Scalar, WireType>> = {
  string: WireType.LengthDelimited,
  bytes: WireType.LengthDelimited,
  bool: WireType.Varint,
  uint32: WireType.Varint,
  int32: WireType.Varint,
  uint64: WireType.Varint,
  int64: WireType.Varint,
  double: WireType.Bit64,
  float: WireType.Bit32,
};

function writeScalar(writer: BinaryWriter, scalar: Scalar, value: unknown, path: string): void {
  const isRight =
    scalar === 'string' || scalar === 'bytes'
      ? typeof value === 'string'
      : scalar === 'bool'
        ? typeof value === 'boolean'
        : isNumber(scalar, value);
  if (!isRight) throw wrong(path, scalar, value);
  if (scalar === 'bytes') writer.bytes(Buffer.from(value as string, 'base64'));
  else (writer[scalar] as (value: unknown) => unknown).call(writer, value);
}

function isNumber(scalar: Scalar, value: unknown): boolean {
  if (typeof value !== 'number' || !Number.isFinite(value)) return false;
  if (scalar === 'double' || scalar === 'float') return true;
  if (!Number.isSafeInteger(value)) return false;
  if (scalar === 'uint32') return value >= 0 && value <= 0xffff_ffff;
  return scalar !== 'uint64' || value >= 0;
}

function wrong(path: string, expected: string, found: unknown): EncodeError {
  return new EncodeError(`${path}: ${expected} is expected, found ${JSON.stringify(found)?.slice(0, 80)}`);
}
