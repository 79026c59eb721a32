// Prepares an object for the store: defaults, then all checks, with all errors at once.

import { inSteps } from '../../base/turns.ts';
import type { FieldError } from '../../kube/objects/field-error.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { evaluateRules, hasRulesIn } from '../cel/evaluate.ts';
import type { Place } from '../model/call.ts';
import type { Served } from '../model/registry.ts';
import { invalidObject } from '../model/status.ts';
import { badRequest } from '../model/status-errors.ts';
import type { Step } from '../model/steps.ts';
import { type CompiledSchema, compileSchema } from '../schema/compile.ts';
import { applySchemaDefaults } from '../schema/defaults.ts';
import type { JsonValue, Schema } from '../schema/schema.ts';
import { errorsOfChanges } from '../schema/unchanged.ts';
import { validateSchema } from '../schema/validate.ts';
import { validateMetadata, validateMetadataCounts, validateMetadataUpdate } from './metadata.ts';

export function applyDefaults(served: Served, object: AnyObject): void {
  applySchemaDefaults(served.version.schema, object);
  served.kind.behaviour.applyDefaults?.(object);
}

export interface Validation {
  readonly object: AnyObject;
  /** Absent on create. */
  readonly before: AnyObject | undefined;
  readonly step: Step;
}

/** Throws StatusError Invalid with everything that is wrong. */
export async function validateObject(served: Served, { object, before, step }: Validation): Promise<void> {
  const { behaviour } = served.kind;
  const errors = validateMetadataCounts(object.metadata, before?.metadata);
  if (errors.length > 0) throw invalidObject(subjectOf(served, object), errors);
  errors.push(...validateMetadata(object.metadata, behaviour));
  if (before !== undefined) errors.push(...validateMetadataUpdate(object.metadata, before.metadata));
  const ofSchema = countingErrors(served, { object, before });
  errors.push(...ofSchema);
  await step();
  // A kind's own rules may rely on the types of the schema.
  if (behaviour.validatesAnyShape || !ofSchema.some(isWrongType)) {
    const pieces = behaviour.validateInPieces?.(object, before);
    const ofKind = pieces === undefined ? behaviour.validate?.(object, before) : await inSteps(pieces, step);
    if (ofKind !== undefined && ofKind.length > 0) errors.push(...withoutFieldsOf(ofSchema, ofKind));
  }
  // Rules of definitions; those of built-in kinds are code.
  if (served.version.protobufMessage === undefined && !errors.some(isBlocking)) {
    const previous = before as unknown as JsonValue | undefined;
    errors.push(...evaluateRules(served.version.schema, object as unknown as JsonValue, previous));
  }
  if (errors.length > 0) throw invalidObject(subjectOf(served, object), errors);
}

/** A definition that became stricter lets older objects change where it has nothing against them. */
function countingErrors(served: Served, { object, before }: Omit<Validation, 'step'>): readonly FieldError[] {
  const { version, kind } = served;
  const found = validateSchema(compiledSchema(served), object);
  if (found.length === 0 || before === undefined || version.protobufMessage !== undefined) return found;
  const ofChanges = new Set(errorsOfChanges(found, { schema: version.schema, value: object, before }));
  const { validate, validateInPieces } = kind.behaviour;
  const hasRules = validate !== undefined || validateInPieces !== undefined || hasRulesIn(version.schema);
  return found.filter((error) => ofChanges.has(error) || (hasRules && isBlocking(error)));
}

/** Rules may rely on what the schema bounds. */
function isBlocking({ reason }: FieldError): boolean {
  return ['FieldValueTypeInvalid', 'FieldValueRequired', 'FieldValueTooLong', 'FieldValueTooMany'].includes(reason);
}

/** One error for each field: of its type before its value. */
function withoutFieldsOf(known: readonly FieldError[], errors: readonly FieldError[]): FieldError[] {
  const fields = new Set(known.map(({ field }) => field));
  return errors.filter(({ field }) => !fields.has(field));
}

/** The schema alone, for what is answered and not stored. */
export function validateFields(served: Served, object: AnyObject): void {
  const errors = validateSchema(compiledSchema(served), object);
  if (errors.length > 0) throw invalidObject(subjectOf(served, object), errors);
}

function subjectOf(served: Served, object: AnyObject) {
  return { group: served.kind.group, kind: served.kind.kind, name: object.metadata.name };
}

function isWrongType(error: FieldError): boolean {
  return error.reason === 'FieldValueTypeInvalid';
}

// A memo of constants, by schema: compiling is pure.
const compiledSchemas = new WeakMap<Schema, CompiledSchema>();

function compiledSchema(served: Served): CompiledSchema {
  const { schema, protobufMessage } = served.version;
  let compiled = compiledSchemas.get(schema);
  if (compiled === undefined) {
    compiled = compileSchema(protobufMessage === undefined ? schema : withoutMetadata(schema));
    compiledSchemas.set(schema, compiled);
  }
  return compiled;
}

// The metadata of built-in kinds is checked by metadata.ts alone; a definition may say more about a name.
function withoutMetadata(schema: Schema): Schema {
  const { metadata: _metadata, ...properties } = schema.properties ?? {};
  return { ...schema, properties, required: (schema.required ?? []).filter((name) => name !== 'metadata') };
}

/** The namespace and name of the body against those of the URL. */
export function checkPlace(place: Place, object: AnyObject): void {
  const { metadata } = object;
  if (place.served.kind.isNamespaced) {
    metadata.namespace ??= place.namespace;
    if (metadata.namespace !== place.namespace) {
      throw badRequest(
        `metadata.namespace is ${JSON.stringify(metadata.namespace)}, the URL has ${JSON.stringify(place.namespace)}`,
      );
    }
  } else delete metadata.namespace;
  if (place.name === '') return;
  if (metadata.name === '') metadata.name = place.name;
  if (metadata.name !== place.name) {
    throw badRequest(`metadata.name is ${JSON.stringify(metadata.name)}, the URL has ${JSON.stringify(place.name)}`);
  }
}
