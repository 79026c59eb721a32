// Whether a value has the types that the message table says. The schema tells a client what is wrong; defaults and
// validation only ask whether they may look at all.

import { type Field, flatFields, type Scalar } from './messages.ts';
import { specialSchemas } from './schemas.ts';

const typeofScalar: Readonly<Record<Scalar, string>> = {
  string: 'string',
  bytes: 'string',
  bool: 'boolean',
  int32: 'number',
  int64: 'number',
  double: 'number',
};

/** Missing and unknown fields are no matter of types. */
export function hasTypesOf(message: string, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const object = value as Record<string, unknown>;
  return flatFields(message).every((field) => {
    const child = object[field.name];
    return child === undefined || hasFieldType(field, child);
  });
}

function hasFieldType(field: Field, value: unknown): boolean {
  if (field.shape === 'single') return hasValueType(field, value);
  if (field.shape === 'list') return Array.isArray(value) && value.every((item) => hasValueType(field, item));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((item) => hasValueType(field, item));
}

function hasValueType(field: Field, value: unknown): boolean {
  if ('scalar' in field.type) return typeof value === typeofScalar[field.type.scalar];
  const special = specialSchemas[field.type.message];
  if (special === undefined) return hasTypesOf(field.type.message, value);
  if (special['x-kubernetes-int-or-string'] === true) return typeof value === 'string' || typeof value === 'number';
  if (special.type === 'array') return Array.isArray(value);
  return special.type === undefined || (typeof value === special.type && value !== null);
}
