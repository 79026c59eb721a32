// Structural schemas of the built-in kinds, built from the message table when a kind is first used. They refuse
// unknown fields, wrong types and missing fields; what else a kind asks for is in its own file in src/model.

import type { Schema } from '../schema/schema.ts';
import { type Field, flatFields, type Scalar } from './messages.ts';

/** Schema of a kind's message: its fields, and the apiVersion and kind that protobuf does not carry. */
export function kindSchemaOf(name: string): Schema {
  const schema = schemaOf(name);
  const typeMeta = { apiVersion: { type: 'string' }, kind: { type: 'string' } } as const;
  return { ...schema, properties: { ...typeMeta, ...schema.properties } };
}

export function schemaOf(name: string): Schema {
  return messageSchema(name, 'spec');
}

/** Kubernetes looks at the types of what stands in a status, not at what is missing or doubled there. */
type Place = 'spec' | 'status';

const quantityPattern = '^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$';

/** Messages whose JSON is not an object of their fields. */
export const specialSchemas: Readonly<Record<string, Schema>> = {
  'meta.v1.Time': { type: 'string', format: 'date-time' },
  'meta.v1.MicroTime': { type: 'string', format: 'date-time' },
  'meta.v1.Duration': { type: 'string' },
  'meta.v1.FieldsV1': { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  'resource.Quantity': { type: 'string', pattern: quantityPattern },
  'intstr.IntOrString': { 'x-kubernetes-int-or-string': true },
  'runtime.RawExtension': { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  'authentication.v1.ExtraValue': { type: 'array', items: { type: 'string' } },
  'authorization.v1.ExtraValue': { type: 'array', items: { type: 'string' } },
  // A schema contains schemas without end: the CustomResourceDefinition kind reads them itself.
  'apiextensions.v1.JSONSchemaProps': { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  'apiextensions.v1.JSON': { 'x-kubernetes-preserve-unknown-fields': true },
};

export const scalarSchemas: Readonly<Record<Scalar, Schema>> = {
  string: { type: 'string' },
  bytes: { type: 'string', format: 'byte' },
  bool: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  double: { type: 'number', format: 'double' },
};

// A memo of constants: messages that several kinds contain are built once and shared.
const built = new Map<string, Schema>();

function messageSchema(name: string, place: Place): Schema {
  const key = `${place} ${name}`;
  const known = specialSchemas[name] ?? built.get(key);
  if (known !== undefined) return known;
  const schema = buildMessageSchema(name, place);
  built.set(key, schema);
  return schema;
}

function buildMessageSchema(name: string, place: Place): Schema {
  const properties: Record<string, Schema> = {};
  const required: string[] = [];
  for (const field of flatFields(name)) {
    const isChecked = place === 'spec' && field.name !== 'status';
    properties[field.name] = fieldSchema(field, isChecked ? 'spec' : 'status', toleratesDuplicates(name, field));
    if (place === 'spec' && mustBePresent(field)) required.push(field.name);
  }
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }) };
}

// Go writes an empty list as null, so a missing list is an empty one; a schema that needs items requires them.
function mustBePresent(field: Field): boolean {
  return field.isRequired && field.shape === 'single' && field.default === undefined;
}

// Lists that Kubernetes merges by key when it patches, but does not refuse for having two items of one key.
const listsWithDuplicates: ReadonlySet<string> = new Set([
  'core.v1.Container.ports',
  'core.v1.Container.env',
  'core.v1.EphemeralContainer.ports',
  'core.v1.EphemeralContainer.env',
  'core.v1.PodSpec.imagePullSecrets',
  'core.v1.PodSpec.hostAliases',
  'core.v1.ServiceAccount.secrets',
  'meta.v1.ObjectMeta.finalizers',
  'meta.v1.ObjectMeta.ownerReferences',
]);

function toleratesDuplicates(message: string, field: Field): boolean {
  return listsWithDuplicates.has(`${message}.${field.name}`);
}

function fieldSchema(field: Field, place: Place, hasDuplicates: boolean): Schema {
  const value = 'scalar' in field.type ? scalarSchemas[field.type.scalar] : messageSchema(field.type.message, place);
  if (field.shape === 'list') {
    return { type: 'array', items: value, ...(place === 'status' || hasDuplicates ? {} : listExtensions(field)) };
  }
  if (field.shape === 'map') return { type: 'object', additionalProperties: value, ...mapExtensions(field) };
  const withMapType = field.mapType === undefined ? value : { ...value, ...mapExtensions(field) };
  return field.default === undefined ? withMapType : { ...withMapType, default: field.default };
}

export function listExtensions(field: Field): Schema {
  if (field.listType === undefined) return {};
  if (field.listType !== 'map') return { 'x-kubernetes-list-type': field.listType };
  return { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': field.listMapKeys };
}

export function mapExtensions(field: Field): Schema {
  return field.mapType === undefined ? {} : { 'x-kubernetes-map-type': field.mapType };
}
