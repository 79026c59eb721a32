// When a list may call itself a set or a map, and by which keys.

import { type FieldError, forbidden, invalid, required } from '../../kube/objects/field-error.ts';
import type { Schema } from './schema.ts';

const scalarTypes: ReadonlySet<string | undefined> = new Set(['string', 'integer', 'number', 'boolean']);

export function checkListAndMapTypes(schema: Schema, path: string, errors: FieldError[]): void {
  const listType = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'];
  if (listType !== undefined && schema.type !== 'array') {
    errors.push(invalid(`${path}.type`, schema.type ?? '', 'must be array if x-kubernetes-list-type is specified'));
  }
  if (schema['x-kubernetes-map-type'] !== undefined && schema.type !== 'object') {
    errors.push(invalid(`${path}.type`, schema.type ?? '', 'must be object if x-kubernetes-map-type is specified'));
  }
  if (keys !== undefined && listType !== 'map') {
    const field = `${path}.x-kubernetes-list-map-keys`;
    errors.push(forbidden(field, 'must be empty if x-kubernetes-list-type is not map'));
  }
  if (listType === 'set') checkSet(schema, path, errors);
  if (listType === 'map') checkMap(schema, keys ?? [], path, errors);
}

function checkSet({ items }: Schema, path: string, errors: FieldError[]): void {
  if (items === undefined) return;
  if (items.nullable === true) {
    errors.push(forbidden(`${path}.items.nullable`, 'cannot be nullable when x-kubernetes-list-type is set'));
  }
  if (items.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic') {
    const reason = 'must be atomic as item of a list with x-kubernetes-list-type=set';
    errors.push(invalid(`${path}.items.x-kubernetes-map-type`, items['x-kubernetes-map-type'] ?? '', reason));
  }
  if (items.type === 'array' && (items['x-kubernetes-list-type'] ?? 'atomic') !== 'atomic') {
    const reason = 'must be atomic as item of a list with x-kubernetes-list-type=set';
    errors.push(invalid(`${path}.items.x-kubernetes-list-type`, items['x-kubernetes-list-type'], reason));
  }
}

function checkMap({ items }: Schema, keys: readonly string[], path: string, errors: FieldError[]): void {
  if (keys.length === 0) {
    const reason = 'must not be empty if x-kubernetes-list-type is map';
    errors.push(required(`${path}.x-kubernetes-list-map-keys`, reason));
  }
  if (items !== undefined && items.type !== 'object') {
    const reason = 'must be object if parent array has x-kubernetes-list-type map';
    errors.push(invalid(`${path}.items.type`, items.type ?? '', reason));
    return;
  }
  const seen = new Set<string>();
  for (const [index, key] of keys.entries()) {
    const field = `${path}.x-kubernetes-list-map-keys[${index}]`;
    if (seen.has(key)) errors.push(invalid(field, key, 'must not be repeated'));
    seen.add(key);
    checkMapKey(items ?? {}, key, field, errors);
  }
}

function checkMapKey(items: Schema, key: string, field: string, errors: FieldError[]): void {
  const property = items.properties?.[key];
  if (property === undefined) {
    errors.push(invalid(field, key, 'entries must all be names of item properties'));
    return;
  }
  if (!scalarTypes.has(property.type)) {
    errors.push(invalid(field, key, 'must be the name of a property of a scalar type'));
  }
  if (property.default === undefined && !items.required?.includes(key)) {
    errors.push(invalid(field, key, 'the property must have a default or be required'));
  }
}
