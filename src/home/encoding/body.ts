// From a request body to an object of the kind that is asked for, or to a refusal that says what is wrong with it.
// Unknown and repeated fields are refused, warned about or ignored, as the request wishes.

import { type FieldError, invalid, tooLong } from '../../kube/objects/field-error.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { Call, Engine } from '../model/call.ts';
import { normalizeMetadata } from '../model/metadata.ts';
import type { Served } from '../model/registry.ts';
import { invalidObject, StatusError } from '../model/status.ts';
import { badRequest, nestedTooDeep, tooManyValues } from '../model/status-errors.ts';
import type { Step } from '../model/steps.ts';
import { bufferOf, textOf } from '../model/stored.ts';
import { pruneUnknownFields } from '../schema/prune.ts';
import { nestingDepthMax } from '../schema/walk.ts';
import { scanJson } from './duplicate-keys.ts';
import { decodeProtobufBody, protobufMediaType } from './protobuf.ts';
import { type DecodedBody, decodeYaml } from './yaml-body.ts';

const jsonMediaType = 'application/json';
const yamlMediaType = 'application/yaml';

/** The object in the body, with what its schema does not know removed, and metadata in its one form. */
export async function readObject(engine: Engine, call: Call, step: Step): Promise<AnyObject> {
  await step();
  const body = readBytes(engine, call);
  const { value, duplicates } = decodeBody(mediaTypeOf(call), body, {
    isProtobufAccepted: call.served.version.protobufMessage !== undefined,
    valuesMax: engine.limits.valuesMax,
  });
  await step();
  return admitFields(call, asObject(value), duplicates);
}

export function readBytes(engine: Engine, call: Call): Uint8Array {
  const body = call.request.body ?? new Uint8Array();
  if (body.length > engine.limits.bodyBytesMax) {
    const message = `Request entity too large: limit is ${engine.limits.bodyBytesMax}`;
    throw new StatusError('RequestEntityTooLarge', message);
  }
  return body;
}

export function mediaTypeOf(call: Pick<Call, 'request'>): string {
  const header = call.request.headers['content-type'] ?? jsonMediaType;
  const end = header.indexOf(';');
  return (end < 0 ? header : header.slice(0, end)).trim().toLowerCase();
}

export interface BodyOptions {
  readonly isProtobufAccepted: boolean;
  readonly valuesMax: number;
}

export function decodeBody(
  mediaType: string,
  body: Uint8Array,
  { isProtobufAccepted, valuesMax }: BodyOptions,
): DecodedBody {
  if (mediaType === jsonMediaType || mediaType === '') return decodeJson(body, valuesMax);
  if (mediaType === yamlMediaType) return decodeYaml(body);
  if (mediaType === protobufMediaType && isProtobufAccepted) {
    return { value: decodeProtobufBody(body, valuesMax).object, duplicates: [] };
  }
  const accepted = [jsonMediaType, yamlMediaType, ...(isProtobufAccepted ? [protobufMediaType] : [])];
  throw unsupportedMediaType(accepted);
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message = `the media type of the body is not known here; accepted are ${accepted.join(', ')}`;
  return new StatusError('UnsupportedMediaType', message);
}

export function decodeJson(body: Uint8Array, valuesMax: number): DecodedBody {
  const text = textOf(body);
  // As many characters as bytes: ASCII, which the scan can read as it is.
  const scanned = text.length === body.length ? text : bufferOf(body).toString('latin1');
  const { duplicates, excess } = scanJson(scanned, { depthMax: nestingDepthMax, valuesMax });
  if (excess === 'depth') throw nestedTooDeep();
  if (excess === 'values') throw tooManyValues(valuesMax);
  try {
    return { value: JSON.parse(text), duplicates: duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`) };
  } catch (error) {
    throw badRequest(`the object provided is not valid JSON: ${(error as Error).message}`, error);
  }
}

export function asObject(value: unknown): AnyObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badRequest('the object provided is not an object: a JSON or YAML object is expected');
  }
  return value as AnyObject;
}

/** Checks that the object is of the kind asked for, and brings it into the form that its schema describes. */
export function admitFields(call: Call, object: AnyObject, duplicates: readonly string[]): AnyObject {
  const { served } = call;
  checkType(served, object);
  served.kind.behaviour.normalize?.(object);
  const unknown = pruneUnknownFields(served.version.schema, object);
  if (unknown.length > 0 || duplicates.length > 0) reportFields(call, unknown, duplicates);
  object.metadata = normalizeMetadata(object.metadata);
  return object;
}

function checkType(served: Served, object: AnyObject): void {
  object.apiVersion ??= served.apiVersion;
  object.kind ??= served.kind.kind;
  if (object.kind !== served.kind.kind) {
    throw badRequest(
      `${object.kind} in version ${JSON.stringify(object.apiVersion)} cannot be handled as a ${served.kind.kind}`,
    );
  }
  if (object.apiVersion !== served.apiVersion) {
    throw badRequest(
      `apiVersion is ${JSON.stringify(object.apiVersion)}, this path serves ${JSON.stringify(served.apiVersion)}`,
    );
  }
}

function reportFields(call: Call, unknown: readonly string[], duplicates: readonly string[]): void {
  const directive = call.query.get('fieldValidation') ?? 'Warn';
  if (directive === 'Ignore') return;
  const texts = [...unknown.map((path) => `unknown field ${JSON.stringify(path)}`), ...duplicates];
  if (directive !== 'Strict') {
    call.warnings.push(...texts);
    return;
  }
  const { served } = call;
  const what = `${served.kind.kind} in version ${JSON.stringify(served.version.name)} cannot be handled as a ${served.kind.kind}`;
  throw badRequest(`${what}: strict decoding error: ${texts.join(', ')}`);
}

type WriteOptions = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions';

export function checkWriteOptions(call: Pick<Call, 'query'>, kind: WriteOptions): void {
  if (call.query.size === 0) return;
  const errors = validateManagerName(call.query.get('fieldManager') ?? '');
  const directive = call.query.get('fieldValidation');
  if (directive !== null && !['', 'Ignore', 'Warn', 'Strict'].includes(directive)) {
    errors.push(invalid('fieldValidation', directive, 'must be one of Ignore, Warn, Strict'));
  }
  const wrongDryRun = call.query.getAll('dryRun').find((value) => value !== 'All' && value !== '');
  if (wrongDryRun !== undefined) errors.push(invalid('dryRun', wrongDryRun, 'must be All'));
  if (errors.length === 0) return;
  throw invalidObject({ group: 'meta.k8s.io', kind, name: '' }, errors);
}

const managerBytesMax = 128;

/** Every write may name its manager, and an apply must. */
function validateManagerName(name: string): FieldError[] {
  const errors: FieldError[] = [];
  if (Buffer.byteLength(name) > managerBytesMax) errors.push(tooLong('fieldManager', managerBytesMax));
  if (/\p{C}/u.test(name)) errors.push(invalid('fieldManager', name, 'should only contain printable characters'));
  return errors;
}
