// How the values of a kind are merged: which maps and lists are taken whole, and by which keys the items of a list are told
// apart. From the schema of a custom kind, or from the messages of a built-in one. Pure.

import { type Field, flatFields, isAtomicMessage } from '../messages/messages.ts';
import { specialSchemas } from '../messages/schemas.ts';
import { objectMetaSchema } from '../schema/object-meta.ts';
import type { Schema } from '../schema/schema.ts';

export type MergeType =
  | { readonly kind: 'scalar' }
  /** Decided by the value: objects are merged, lists are taken whole. */
  | { readonly kind: 'untyped' }
  | MapType
  | ListType;

export interface MapType {
  readonly kind: 'map';
  readonly isAtomic: boolean;
  /** Part of every object, even of an empty one: who sets fields in it has not made it. */
  readonly isAlwaysThere?: boolean;
  /** The type of a field with a name of its own in the schema. */
  readonly fieldOf: (name: string) => MergeType | undefined;
  /** The type of every other field; undefined if there must be none. */
  readonly elementOf: () => MergeType | undefined;
}

export interface ListType {
  readonly kind: 'list';
  readonly relation: 'atomic' | 'set' | 'map';
  readonly keys: readonly string[];
  /** A key that an item leaves out counts as this. */
  readonly defaultOf: (key: string) => unknown;
  readonly itemOf: () => MergeType;
}

const scalarType: MergeType = { kind: 'scalar' };
export const untypedType: MergeType = { kind: 'untyped' };

const metadataType = lazily(() => {
  const { finalizers, ownerReferences } = objectMetaSchema.properties!;
  return typeOfSchema({
    ...objectMetaSchema,
    properties: {
      ...objectMetaSchema.properties,
      finalizers: { ...finalizers, 'x-kubernetes-list-type': 'set' },
      ownerReferences: {
        ...ownerReferences,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['uid'],
      },
    },
  });
});

/** The type of a whole object. `message` is absent for a custom kind. */
export function typeOfKind(schema: Schema, message: string | undefined): MapType {
  const own = (message === undefined ? typeOfSchema(schema) : typeOfMessage(message)) as MapType;
  const fieldOf = (name: string): MergeType | undefined => {
    if (name === 'metadata') return metadataType();
    return name === 'apiVersion' || name === 'kind' ? scalarType : own.fieldOf(name);
  };
  return { ...own, isAtomic: false, fieldOf };
}

function typeOfSchema(schema: Schema): MergeType {
  if (schema['x-kubernetes-int-or-string']) return scalarType;
  if (schema.type === 'array') return listOfSchema(schema);
  if (schema.type === 'object') return mapOfSchema(schema);
  return schema.type === undefined ? untypedType : scalarType;
}

function listOfSchema(schema: Schema): ListType {
  const items = schema.items ?? {};
  return {
    kind: 'list',
    relation: schema['x-kubernetes-list-type'] ?? 'atomic',
    keys: schema['x-kubernetes-list-map-keys'] ?? [],
    defaultOf: (key) => items.properties?.[key]?.default,
    itemOf: lazily(() => typeOfSchema(items)),
  };
}

const typeNames: ReadonlySet<string> = new Set(['apiVersion', 'kind']);

function mapOfSchema(schema: Schema): MapType {
  const { properties = {}, additionalProperties } = schema;
  const isResource = schema['x-kubernetes-embedded-resource'] === true;
  const known = new Map<string, MergeType>();
  return {
    kind: 'map',
    isAtomic: schema['x-kubernetes-map-type'] === 'atomic',
    fieldOf: (name) => {
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (isResource && name === 'metadata') return metadataType();
      if (property === undefined) return isResource && typeNames.has(name) ? scalarType : undefined;
      let type = known.get(name);
      if (type === undefined) known.set(name, (type = typeOfSchema(property)));
      return type;
    },
    elementOf: lazily(() => {
      if (typeof additionalProperties === 'object') return typeOfSchema(additionalProperties);
      const isOpen = additionalProperties === true || schema['x-kubernetes-preserve-unknown-fields'] === true;
      return isOpen ? untypedType : undefined;
    }),
  };
}

// A memo of constants, by message.
const built = new Map<string, MergeType>();

function typeOfMessage(name: string): MergeType {
  let type = built.get(name);
  if (type === undefined) built.set(name, (type = buildMessage(name)));
  return type;
}

function buildMessage(name: string): MergeType {
  const special = specialSchemas[name];
  if (special !== undefined) return typeOfSchema(special);
  const fields = new Map(flatFields(name).map((field) => [field.name, lazily(() => typeOfField(field))]));
  return {
    kind: 'map',
    isAtomic: isAtomicMessage(name),
    fieldOf: (field) => fields.get(field)?.(),
    elementOf: () => undefined,
  };
}

function typeOfField(field: Field): MergeType {
  const valueType = () => ('scalar' in field.type ? scalarType : typeOfMessage(field.type.message));
  if (field.shape === 'list') return listOfField(field, valueType);
  const isAtomic = field.mapType === 'atomic';
  if (field.shape === 'map') return { kind: 'map', isAtomic, fieldOf: () => undefined, elementOf: lazily(valueType) };
  const value = valueType();
  if (value.kind !== 'map') return value;
  return { ...value, isAtomic: isAtomic || value.isAtomic, isAlwaysThere: !field.isPointer };
}

function listOfField(field: Field, valueType: () => MergeType): ListType {
  const message = 'message' in field.type ? field.type.message : undefined;
  const defaultOf = (key: string) =>
    message === undefined ? undefined : flatFields(message).find(({ name }) => name === key)?.default;
  return {
    kind: 'list',
    relation: field.listType ?? 'atomic',
    keys: field.listMapKeys,
    defaultOf,
    itemOf: lazily(valueType),
  };
}

function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
