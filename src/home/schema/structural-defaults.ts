// The defaults in a schema of a definition: each is held against the schema that it stands in.

import type { Pieces } from '../../base/turns.ts';
import { forbidden, invalid } from '../../kube/objects/field-error.ts';
import { compileSchema } from './compile.ts';
import { pruneUnknownFields } from './prune.ts';
import type { Schema } from './schema.ts';
import type { Examination } from './structural-level.ts';
import { validateShallow } from './validate.ts';
import { shown } from './walk.ts';

/** For a schema that is sound otherwise. */
export function checkDefaults(schema: Schema, path: string, examination: Examination): Pieces<void> {
  return checkLevel(schema, path, examination, { isResource: true, isInMetadata: false });
}

interface Place {
  /** The root of an object, or of one embedded in it: its metadata has no defaults. */
  readonly isResource: boolean;
  readonly isInMetadata: boolean;
}

function* checkLevel(schema: Schema, path: string, examination: Examination, place: Place): Pieces<void> {
  if (examination.isPieceOver({})) yield;
  if (schema.default !== undefined) {
    yield;
    const field = `${path}.default`;
    if (place.isInMetadata) examination.errors.push(forbidden(field, 'must not be set in metadata'));
    else checkDefault(schema, field, examination);
  }
  const { properties, items, additionalProperties } = schema;
  const isResource = place.isResource || schema['x-kubernetes-embedded-resource'] === true;
  const inside = { isResource: false, isInMetadata: place.isInMetadata };
  for (const name in properties) {
    const isInMetadata = place.isInMetadata || (isResource && name === 'metadata');
    yield* checkLevel(properties[name]!, `${path}.properties[${name}]`, examination, { ...inside, isInMetadata });
  }
  if (items !== undefined) yield* checkLevel(items, `${path}.items`, examination, inside);
  if (typeof additionalProperties === 'object') {
    yield* checkLevel(additionalProperties, `${path}.additionalProperties`, examination, inside);
  }
}

function checkDefault(schema: Schema, field: string, { errors, work }: Examination): void {
  const value = structuredClone(schema.default);
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  const unknown = pruneUnknownFields(schema, value, { isRoot: isEmbedded });
  if (unknown.length > 0) {
    errors.push(invalid(field, shown(schema.default), `must not have unknown fields: ${unknown.join(', ')}`));
  }
  // As Kubernetes does, without the defaults inside it: `default: {}` does not satisfy what is required there.
  errors.push(...validateShallow(compileSchema(schema), schema.default, field, work));
}
