// Defaults in a schema are held against it when it is defined, so that no object can become wrong by being defaulted.

import { type FieldError, forbidden, invalid } from '../../kube/objects/field-error.ts';
import { pruneUnknownFields } from './prune.ts';
import type { Schema } from './schema.ts';
import { validateSchema } from './validate.ts';
import { shown } from './walk.ts';

/** For a schema that is sound otherwise. */
export function checkDefaults(schema: Schema, path: string, errors: FieldError[], isInMetadata = false): void {
  if (schema.default !== undefined) {
    if (isInMetadata) errors.push(forbidden(`${path}.default`, 'must not be set in metadata'));
    else checkDefault(schema, `${path}.default`, errors);
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const isMetadata = isInMetadata || (name === 'metadata' && isResource(schema, path));
    checkDefaults(property, `${path}.properties[${name}]`, errors, isMetadata);
  }
  if (schema.items !== undefined) checkDefaults(schema.items, `${path}.items`, errors, isInMetadata);
  if (typeof schema.additionalProperties === 'object') {
    checkDefaults(schema.additionalProperties, `${path}.additionalProperties`, errors, isInMetadata);
  }
}

function isResource(schema: Schema, path: string): boolean {
  return path.endsWith('openAPIV3Schema') || schema['x-kubernetes-embedded-resource'] === true;
}

function checkDefault(schema: Schema, field: string, errors: FieldError[]): void {
  const value = structuredClone(schema.default);
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  const unknown = pruneUnknownFields(schema, value, { isRoot: isEmbedded });
  if (unknown.length > 0) {
    errors.push(invalid(field, shown(schema.default), `must not have unknown fields: ${unknown.join(', ')}`));
  }
  // As Kubernetes does, without the defaults inside it: `default: {}` does not satisfy what is required there.
  errors.push(...validateSchema(schema, schema.default, field));
}
