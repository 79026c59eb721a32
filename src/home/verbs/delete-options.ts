// The options of a delete, from its body and its query.

import { type FieldError, invalid } from '../../kube/objects/field-error.ts';
import { asObject, decodeBody, mediaTypeOf, readBytes } from '../encoding/body.ts';
import { schemaOf } from '../messages/schemas.ts';
import type { Call, Engine } from '../model/call.ts';
import { isTrue } from '../model/route.ts';
import { invalidObject, type StatusError } from '../model/status.ts';
import { badRequest } from '../model/status-errors.ts';
import { applySchemaDefaults } from '../schema/defaults.ts';
import { validateSchema } from '../schema/validate.ts';

export type Propagation = 'Background' | 'Foreground' | 'Orphan';

export interface DeleteOptions {
  /** Absent: in the background, or as an earlier delete of the same object has asked for. */
  readonly propagation?: Propagation;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly isDryRun: boolean;
}

interface RawOptions {
  kind?: string;
  propagationPolicy?: string;
  orphanDependents?: boolean;
  preconditions?: { uid?: string; resourceVersion?: string };
  dryRun?: string[];
}

export function readDeleteOptions(engine: Engine, call: Call): DeleteOptions {
  const body = readBytes(engine, call);
  const bodyOptions = { isProtobufAccepted: true, valuesMax: engine.limits.valuesMax };
  const raw: RawOptions =
    body.length === 0 ? {} : (asObject(decodeBody(mediaTypeOf(call), body, bodyOptions).value) as RawOptions);
  if (raw.kind !== undefined && raw.kind !== 'DeleteOptions') {
    throw badRequest(`${raw.kind} cannot be handled as a DeleteOptions`);
  }
  checkTypes(raw);
  const { uid, resourceVersion } = raw.preconditions ?? {};
  return {
    propagation: propagationOf(call, raw),
    ...(uid ? { uid } : {}),
    ...(resourceVersion ? { resourceVersion } : {}),
    isDryRun: call.isDryRun || raw.dryRun?.includes('All') === true,
  };
}

/** Go programs send null for what they leave out; defaults take that away. */
function checkTypes(raw: RawOptions): void {
  const schema = schemaOf('meta.v1.DeleteOptions');
  applySchemaDefaults(schema, raw);
  const errors = validateSchema(schema, raw);
  if (errors.length > 0) throw invalidOptions(errors);
}

function invalidOptions(errors: readonly FieldError[]): StatusError {
  return invalidObject({ group: 'meta.k8s.io', kind: 'DeleteOptions', name: '' }, errors);
}

function propagationOf(call: Call, raw: RawOptions): Propagation | undefined {
  const policy = raw.propagationPolicy || call.query.get('propagationPolicy');
  const orphan = raw.orphanDependents ?? queryFlag(call, 'orphanDependents');
  if (policy === null || policy === undefined || policy === '') return orphan ? 'Orphan' : undefined;
  if (policy === 'Background' || policy === 'Foreground' || policy === 'Orphan') return policy;
  throw invalidOptions([invalid('propagationPolicy', policy, 'must be one of Background, Foreground, Orphan')]);
}

function queryFlag(call: Call, name: string): boolean | undefined {
  const value = call.query.get(name);
  return value === null ? undefined : isTrue(value);
}
