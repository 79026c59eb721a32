// For tests: encodes objects of the built-in kinds with a library that knows nothing of our decoder, from the same
// table of messages, and makes up objects of any message.

import fc from 'fast-check';
import protobuf from 'protobufjs';
import { type Field, messageOf } from '../messages/messages.ts';

const { Type, Field: PbField, MapField, Root } = protobuf;

type Json = Record<string, unknown>;

/** Types of the library, by our names of messages; protobuf names must not contain dots. */
export class ProtobufEncoder {
  readonly #root = new Root();
  readonly #types = new Map<string, protobuf.Type>();

  constructor() {
    const meta = new Type('TypeMeta').add(new PbField('apiVersion', 1, 'string')).add(new PbField('kind', 2, 'string'));
    const unknown = new Type('Unknown')
      .add(new PbField('typeMeta', 1, 'TypeMeta'))
      .add(new PbField('raw', 2, 'bytes'))
      .add(new PbField('contentEncoding', 3, 'string'))
      .add(new PbField('contentType', 4, 'string'));
    this.#root.add(meta).add(unknown);
  }

  body(apiVersion: string, kind: string, raw: Uint8Array, contentEncoding = ''): Uint8Array {
    const type = this.#root.lookupType('Unknown');
    const bytes = type.encode({ typeMeta: { apiVersion, kind }, raw, contentEncoding, contentType: '' }).finish();
    return Buffer.concat([Buffer.from('k8s\0'), bytes]);
  }

  /** From the JSON form, as a Go program would write it. */
  encode(message: string, json: Json): Uint8Array {
    return this.#typeOf(message).encode(this.#wire(message, json)).finish();
  }

  #typeOf(message: string): protobuf.Type {
    const known = this.#types.get(message);
    if (known !== undefined) return known;
    const type = new Type(message.replaceAll('.', '_'));
    this.#types.set(message, type);
    this.#root.add(type);
    for (const field of messageOf(message).fields) {
      const name = `f${field.number}`;
      const valueType = 'scalar' in field.type ? field.type.scalar : this.#typeOf(field.type.message).name;
      if (field.shape === 'map') type.add(new MapField(name, field.number, 'string', valueType));
      else type.add(new PbField(name, field.number, valueType, field.shape === 'list' ? 'repeated' : 'optional'));
    }
    return type;
  }

  #wire(message: string, json: unknown): Json {
    const special = specialWire(message, json, (name, value) => this.#wire(name, value));
    if (special !== undefined) return special;
    const object = json as Json;
    const wire: Json = {};
    for (const field of messageOf(message).fields) {
      const value = field.isInline ? object : object[field.name];
      if (value !== undefined) wire[`f${field.number}`] = this.#wireField(field, value);
    }
    return wire;
  }

  #wireField(field: Field, value: unknown): unknown {
    const one = (each: unknown) => {
      if ('message' in field.type) return this.#wire(field.type.message, each);
      return field.type.scalar === 'bytes' ? Buffer.from(String(each), 'base64') : each;
    };
    if (field.shape === 'list') return (value as unknown[]).map(one);
    if (field.shape === 'map')
      return Object.fromEntries(Object.entries(value as Json).map(([key, each]) => [key, one(each)]));
    return one(value);
  }
}

function specialWire(
  message: string,
  json: unknown,
  wire: (message: string, value: unknown) => Json,
): Json | undefined {
  const raw = () => Buffer.from(JSON.stringify(json));
  const schema = 'apiextensions.v1.JSONSchemaProps';
  switch (message) {
    case 'meta.v1.Time':
    case 'meta.v1.MicroTime':
      return timeWire(String(json));
    case 'resource.Quantity':
      return { f1: json };
    case 'intstr.IntOrString':
      return typeof json === 'number' ? { f1: 0, f2: json } : { f1: 1, f3: json };
    case 'meta.v1.FieldsV1':
    case 'runtime.RawExtension':
    case 'apiextensions.v1.JSON':
      return { f1: raw() };
    case 'authentication.v1.ExtraValue':
    case 'authorization.v1.ExtraValue':
      return { f1: json };
    case 'apiextensions.v1.JSONSchemaPropsOrBool':
      return typeof json === 'boolean' ? { f1: json } : { f2: wire(schema, json) };
    case 'apiextensions.v1.JSONSchemaPropsOrArray':
      return Array.isArray(json) ? { f2: json.map((each) => wire(schema, each)) } : { f1: wire(schema, json) };
    case 'apiextensions.v1.JSONSchemaPropsOrStringArray':
      return Array.isArray(json) ? { f2: json } : { f1: wire(schema, json) };
    default:
      return undefined;
  }
}

function timeWire(text: string): Json {
  const seconds = Math.floor(Date.parse(text.replace(/\.\d+/, '')) / 1000);
  const micros = Number(/\.(\d{6})Z$/.exec(text)?.[1] ?? '0');
  return { f1: seconds, f2: micros * 1000 };
}

const second = fc.integer({ min: 1, max: 4_000_000_000 });
const jsonValue = fc.dictionary(fc.string({ minLength: 1 }), fc.oneof(fc.integer(), fc.boolean(), fc.string()), {
  minKeys: 1,
});

const specialArbitraries: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  'meta.v1.Time': second.map((each) => `${new Date(each * 1000).toISOString().slice(0, 19)}Z`),
  'meta.v1.MicroTime': fc
    .tuple(second, fc.integer({ min: 0, max: 999_999 }))
    .map(([each, micros]) => `${new Date(each * 1000).toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`),
  'resource.Quantity': fc.constantFrom('500m', '1', '64Mi', '0'),
  'intstr.IntOrString': fc.oneof(fc.integer({ min: -5, max: 70_000 }), fc.string()),
  'meta.v1.FieldsV1': jsonValue,
  'runtime.RawExtension': jsonValue,
  'apiextensions.v1.JSON': fc.oneof(jsonValue, fc.string(), fc.integer(), fc.constant([1, 'a'])),
  'authentication.v1.ExtraValue': fc.array(fc.string(), { maxLength: 3 }),
  'authorization.v1.ExtraValue': fc.array(fc.string(), { maxLength: 3 }),
};

const scalarArbitraries: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  string: fc.string({ unit: 'grapheme' }),
  bytes: fc.uint8Array({ maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  bool: fc.boolean(),
  int32: fc.integer(),
  int64: fc.maxSafeInteger(),
  double: fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
};

/** An object of the message in the form in which JSON shows it: what is empty and may be left out is left out. */
export function arbitraryOf(message: string, depth = 0): fc.Arbitrary<unknown> {
  const special = specialArbitraries[message];
  if (special !== undefined) return special;
  const schema = () => arbitraryOf('apiextensions.v1.JSONSchemaProps', depth + 4);
  if (message === 'apiextensions.v1.JSONSchemaPropsOrBool') return fc.oneof(fc.boolean(), schema());
  if (message === 'apiextensions.v1.JSONSchemaPropsOrArray') return schema();
  if (message === 'apiextensions.v1.JSONSchemaPropsOrStringArray')
    return fc.array(fc.string(), { minLength: 1, maxLength: 2 });
  const fields = messageOf(message).fields;
  const shown = fields.filter((field) => depth < 6 || 'scalar' in field.type);
  const arbitraries = shown.map((field) => fieldArbitrary(field, depth));
  return fc.tuple(...arbitraries).map((values) => {
    const object: Json = {};
    for (const [index, field] of shown.entries()) {
      if (field.isInline) Object.assign(object, values[index]);
      else if (values[index] !== undefined) object[field.name] = values[index];
    }
    return object;
  });
}

function fieldArbitrary(field: Field, depth: number): fc.Arbitrary<unknown> {
  const value =
    'scalar' in field.type ? scalarArbitraries[field.type.scalar]! : arbitraryOf(field.type.message, depth + 1);
  if (field.isInline) return value;
  const isLeftOutWhenEmpty = field.isOmittedWhenEmpty && !field.isPointer && 'scalar' in field.type;
  const shaped =
    field.shape === 'list'
      ? fc.array(value, { minLength: 1, maxLength: 2 })
      : field.shape === 'map'
        ? fc.dictionary(fc.string(), value, { minKeys: 1, maxKeys: 2 })
        : isLeftOutWhenEmpty
          ? value.filter((each) => each !== '' && each !== 0 && each !== false)
          : value;
  return fc.option(shaped, { nil: undefined, freq: depth > 2 ? 1 : 3 });
}
