// Request bodies in application/vnd.kubernetes.protobuf: from bytes to the object that the same request would have
// carried as JSON. One decoder for all built-in kinds, over the table of messages; answers are always JSON.

import { setMember } from '../../base/json.ts';
import { expectWireType, MalformedError, WireReader, wireTypes } from '../../base/protobuf/wire-reader.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { type Field, isMessage, messageOf, messageOfKind, type Scalar } from '../messages/messages.ts';
import { StatusError } from '../model/status.ts';
import { type Fields, specialValues } from './protobuf-special.ts';

export const protobufMediaType = 'application/vnd.kubernetes.protobuf';

const magic = [0x6b, 0x38, 0x73, 0x00];
/** The built-in kinds are at most 20 deep; only the schemas of a CustomResourceDefinition can go deeper. */
const depthMax = 200;

export interface ProtobufBody {
  readonly apiVersion: string;
  readonly kind: string;
  readonly object: AnyObject;
}

/** Throws StatusError BadRequest that says what is wrong and where. */
export function decodeProtobufBody(bytes: Uint8Array, valuesMax: number): ProtobufBody {
  if (magic.some((byte, index) => bytes[index] !== byte)) {
    throw badRequest('the body does not start with the four bytes k8s\\0 of a Kubernetes protobuf message');
  }
  const envelope = guarded('the envelope', () =>
    decodeEnvelope(new WireReader(bytes, { start: magic.length, valuesMax })),
  );
  const { apiVersion, kind } = envelope;
  if (envelope.contentEncoding !== '') {
    throw badRequest(
      `the protobuf body is encoded as ${JSON.stringify(envelope.contentEncoding)}, which is not supported`,
    );
  }
  const message = messageOfBody(apiVersion, kind);
  const fields = guarded(`${kind} ${apiVersion}`, () =>
    decodeMessage(message, new WireReader(envelope.raw, { valuesMax }), 0),
  );
  return { apiVersion, kind, object: { apiVersion, kind, ...fields } as unknown as AnyObject };
}

function messageOfBody(apiVersion: string, kind: string): string {
  // Every group has its own name for the options of a delete; the message is the same.
  const message = kind === 'DeleteOptions' ? 'meta.v1.DeleteOptions' : messageOfKind(apiVersion, kind);
  if (message !== undefined && isMessage(message)) return message;
  const what = `kind ${JSON.stringify(kind)} of version ${JSON.stringify(apiVersion)}`;
  throw badRequest(`${what} cannot be read from protobuf; send it as application/json`);
}

interface Envelope {
  apiVersion: string;
  kind: string;
  raw: Uint8Array;
  contentEncoding: string;
}

function decodeEnvelope(reader: WireReader): Envelope {
  const envelope: Envelope = { apiVersion: '', kind: '', raw: new Uint8Array(), contentEncoding: '' };
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (number >= 1 && number <= 3) expectWireType(wireType, wireTypes.bytes);
    if (number === 1) decodeTypeMeta(reader.nested(), envelope);
    else if (number === 2) envelope.raw = reader.slice();
    else if (number === 3) envelope.contentEncoding = reader.string();
    else reader.skip(wireType);
  }
  return envelope;
}

function decodeTypeMeta(reader: WireReader, envelope: Envelope): void {
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (number <= 2) expectWireType(wireType, wireTypes.bytes);
    if (number === 1) envelope.apiVersion = reader.string();
    else if (number === 2) envelope.kind = reader.string();
    else reader.skip(wireType);
  }
}

function decodeMessage(name: string, reader: WireReader, depth: number, into: Fields = {}): Fields {
  if (depth > depthMax) throw new MalformedError(`messages are nested more than ${depthMax} deep`);
  const { byNumber } = messageOf(name);
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    const field = byNumber.get(number);
    if (field === undefined) reader.skip(wireType);
    else atField(field.name, () => decodeField(field, wireType, reader, depth, into));
  }
  return into;
}

function decodeField(field: Field, wireType: number, reader: WireReader, depth: number, into: Fields): void {
  if (field.shape === 'map') decodeMapEntry(field, wireType, reader, depth, into);
  else if (field.shape === 'list') decodeListItem(field, wireType, reader, depth, into);
  else if ('message' in field.type) decodeSingleMessage(field, field.type.message, wireType, reader, depth, into);
  else {
    const value = decodeScalar(field.type.scalar, wireType, reader);
    if (field.isOmittedWhenEmpty && !field.isPointer && isZero(value)) delete into[field.name];
    else into[field.name] = value;
  }
}

function decodeSingleMessage(
  field: Field,
  message: string,
  wireType: number,
  reader: WireReader,
  depth: number,
  into: Fields,
): void {
  expectWireType(wireType, wireTypes.bytes);
  if (field.isInline) {
    decodeMessage(message, reader.nested(), depth + 1, into);
    return;
  }
  // A message that comes in several pieces is the pieces put together.
  const before = specialValues[message] === undefined ? (into[field.name] as Fields | undefined) : undefined;
  const value = messageValue(message, reader.nested(), depth, before);
  if (value === undefined) delete into[field.name];
  else into[field.name] = value;
}

function messageValue(message: string, reader: WireReader, depth: number, into: Fields = {}): unknown {
  const fields = decodeMessage(message, reader, depth + 1, into);
  const special = specialValues[message];
  return special === undefined ? fields : special(fields);
}

function decodeListItem(field: Field, wireType: number, reader: WireReader, depth: number, into: Fields): void {
  const list = (into[field.name] ??= []) as unknown[];
  if ('message' in field.type) {
    expectWireType(wireType, wireTypes.bytes);
    list.push(messageValue(field.type.message, reader.nested(), depth) ?? null);
  } else if (wireType === wireTypes.bytes && wireTypeOf[field.type.scalar] !== wireTypes.bytes) {
    const packed = reader.nested();
    while (packed.hasMore()) list.push(decodeScalar(field.type.scalar, wireTypeOf[field.type.scalar], packed));
  } else {
    list.push(decodeScalar(field.type.scalar, wireType, reader));
  }
}

function decodeMapEntry(field: Field, wireType: number, reader: WireReader, depth: number, into: Fields): void {
  expectWireType(wireType, wireTypes.bytes);
  const entry = reader.nested();
  let key = '';
  let value: unknown = 'scalar' in field.type ? zeroOf[field.type.scalar] : undefined;
  while (entry.hasMore()) {
    const tag = entry.tag();
    if (tag.number === 1) {
      expectWireType(tag.wireType, wireTypes.bytes);
      key = entry.string();
    } else if (tag.number !== 2) entry.skip(tag.wireType);
    else if ('scalar' in field.type) value = decodeScalar(field.type.scalar, tag.wireType, entry);
    else {
      expectWireType(tag.wireType, wireTypes.bytes);
      value = messageValue(field.type.message, entry.nested(), depth);
    }
  }
  setMember((into[field.name] ??= {}) as Fields, key, value ?? {});
}

const wireTypeOf: Readonly<Record<Scalar, number>> = {
  string: wireTypes.bytes,
  bytes: wireTypes.bytes,
  bool: wireTypes.varint,
  int32: wireTypes.varint,
  int64: wireTypes.varint,
  double: wireTypes.fixed64,
};

const zeroOf: Readonly<Record<Scalar, unknown>> = { string: '', bytes: '', bool: false, int32: 0, int64: 0, double: 0 };

function decodeScalar(scalar: Scalar, wireType: number, reader: WireReader): string | number | boolean {
  expectWireType(wireType, wireTypeOf[scalar]);
  if (scalar === 'string') return reader.string();
  if (scalar === 'bytes') return Buffer.from(reader.slice()).toString('base64');
  if (scalar === 'bool') return reader.bool();
  if (scalar === 'double') return finite(reader.double());
  return scalar === 'int32' ? reader.int32() : reader.int64();
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new MalformedError(`${value} is not a number that JSON can hold`);
  return value;
}

function isZero(value: string | number | boolean): boolean {
  return value === '' || value === 0 || value === false;
}

function atField(name: string, decode: () => void): void {
  try {
    decode();
  } catch (error) {
    if (error instanceof MalformedError) error.path.unshift(name);
    throw error;
  }
}

function guarded<T>(what: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error;
    const place = error.path.length === 0 ? '' : ` at ${error.path.join('.')}`;
    throw badRequest(`the protobuf body is malformed: ${what}${place}: ${error.message}`, error);
  }
}

function badRequest(message: string, cause?: unknown): StatusError {
  return new StatusError('BadRequest', message, { cause });
}
