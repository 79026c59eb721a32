// The schemas of an OpenAPI document: one component for each message, which refer to each other by name, and one for
// each custom kind, written out.

import { apiVersionOf } from '../../kube/objects/object.ts';
import { type Field, flatFields, isAtomicMessage, messageOfKind, protobufName } from '../messages/messages.ts';
import { listExtensions, mapExtensions, scalarSchemas } from '../messages/schemas.ts';
import type { Kind, KindVersion } from '../model/kind.ts';
import type { Schema } from '../schema/schema.ts';
import { describeField, describeKindField, describeMessage } from './descriptions.ts';

export type OpenApiSchema = Schema & {
  readonly $ref?: string;
  readonly [extension: `x-kubernetes-${string}`]: unknown;
};
export type Components = Record<string, OpenApiSchema>;

/** Messages whose JSON is not an object of their fields. */
const specialComponents: Readonly<Record<string, OpenApiSchema>> = {
  'meta.v1.Time': { type: 'string', format: 'date-time', description: 'A moment, as RFC 3339 writes it.' },
  'meta.v1.MicroTime': { type: 'string', format: 'date-time', description: 'A moment with microseconds.' },
  'meta.v1.Duration': { type: 'string', description: 'A length of time: 1h30m, 250ms.' },
  'meta.v1.FieldsV1': { type: 'object', description: 'A set of fields.' },
  'resource.Quantity': {
    oneOf: [{ type: 'string' }, { type: 'number' }],
    description: 'An amount with a suffix: 500m, 1.5, 64Mi, 2G.',
  },
  'intstr.IntOrString': {
    oneOf: [{ type: 'integer' }, { type: 'string' }],
    format: 'int-or-string',
    description: 'A number or a name.',
  },
  'runtime.RawExtension': { type: 'object', description: 'An object of any kind.' },
  'authentication.v1.ExtraValue': { type: 'array', items: { type: 'string' } },
  'authorization.v1.ExtraValue': { type: 'array', items: { type: 'string' } },
  'apiextensions.v1.JSON': { description: 'Any JSON value.' },
  'apiextensions.v1.JSONSchemaPropsOrBool': { description: 'A schema, true or false.' },
  'apiextensions.v1.JSONSchemaPropsOrArray': { description: 'A schema, or a list of them.' },
  'apiextensions.v1.JSONSchemaPropsOrStringArray': { description: 'A schema, or a list of names.' },
};

/** `core.v1.Pod` -> `io.k8s.api.core.v1.Pod`. */
export function componentName(message: string): string {
  return protobufName(message).replace('k8s.io.', 'io.k8s.').replaceAll('_', '-');
}

/** Component name of a kind: `dev.portolan.v1alpha1.Peer` for a custom one. */
export function kindComponentName(kind: Kind, version: KindVersion): string {
  const message = builtinMessage(kind, version);
  if (message !== undefined) return componentName(message);
  return `${kind.group.split('.').reverse().join('.')}.${version.name}.${kind.kind}`;
}

/** Adds the message and everything it refers to. */
export function addMessage(components: Components, message: string): void {
  const name = componentName(message);
  if (components[name] !== undefined) return;
  const special = specialComponents[message];
  const description = describeMessage(message);
  if (special !== undefined) {
    components[name] = special;
    return;
  }
  const properties: Record<string, OpenApiSchema> = {};
  const required: string[] = [];
  components[name] = {
    type: 'object',
    ...(description !== undefined && { description }),
    ...(isAtomicMessage(message) && { 'x-kubernetes-map-type': 'atomic' }),
    properties,
    get required() {
      return required.length === 0 ? undefined : required;
    },
  };
  const fields = flatFields(message);
  const isKind = fields.some((field) => field.name === 'metadata');
  for (const field of fields) {
    const text = describeField(message, field.name) ?? (isKind ? describeKindField(field.name) : undefined);
    properties[field.name] = fieldSchema(field, text);
    if (field.isRequired) required.push(field.name);
    if ('message' in field.type) addMessage(components, field.type.message);
  }
}

function fieldSchema(field: Field, description: string | undefined): OpenApiSchema {
  const described = { ...(description !== undefined && { description }) };
  const value = valueSchema(field);
  if (field.shape === 'list') {
    return { type: 'array', items: value, ...listExtensions(field), ...patchExtensions(field), ...described };
  }
  if (field.shape === 'map') {
    return { type: 'object', additionalProperties: value, ...mapExtensions(field), ...described };
  }
  const defaults = field.default === undefined ? {} : { default: field.default };
  // Beside a $ref nothing else is read, so it stands in a list of one.
  return value.$ref === undefined ? { ...value, ...defaults, ...described } : { allOf: [value], ...described };
}

function valueSchema(field: Field): OpenApiSchema {
  return 'scalar' in field.type
    ? (scalarSchemas[field.type.scalar] as OpenApiSchema)
    : reference(componentName(field.type.message));
}

function patchExtensions(field: Field): object {
  if (field.patchMergeKey === undefined) return {};
  return { 'x-kubernetes-patch-merge-key': field.patchMergeKey, 'x-kubernetes-patch-strategy': 'merge' };
}

export function reference(name: string): OpenApiSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** Adds the kind, its list, and everything they refer to. */
export function addKind(components: Components, kind: Kind, version: KindVersion): void {
  const name = kindComponentName(kind, version);
  const message = builtinMessage(kind, version);
  const names = { group: kind.group, version: version.name };
  addMessage(components, 'meta.v1.ObjectMeta');
  if (message !== undefined) addMessage(components, message);
  const body: OpenApiSchema = message === undefined ? (version.schema as OpenApiSchema) : components[name]!;
  components[name] = {
    ...body,
    properties: {
      ...typeFields,
      ...body.properties,
      metadata: { allOf: [metadataReference], description: metadataText },
    },
    'x-kubernetes-group-version-kind': [{ ...names, kind: kind.kind }],
  };
  if (kind.behaviour.review !== undefined) return;
  addMessage(components, 'meta.v1.ListMeta');
  components[`${name}List`] = {
    type: 'object',
    description: `A list of ${kind.kind}.`,
    required: ['items'],
    properties: {
      ...typeFields,
      metadata: { allOf: [reference(componentName('meta.v1.ListMeta'))] } as Schema,
      items: { type: 'array', items: reference(name) as Schema },
    },
    'x-kubernetes-group-version-kind': [{ ...names, kind: kind.listKind }],
  };
}

const metadataText = "Standard object's metadata: its name, labels and so on.";
const metadataReference = reference(componentName('meta.v1.ObjectMeta')) as Schema;
const typeFields: Readonly<Record<string, Schema>> = {
  apiVersion: { type: 'string', description: 'APIVersion defines the group and version of this representation.' },
  kind: { type: 'string', description: 'The kind of object this is.' },
};

function builtinMessage(kind: Kind, version: KindVersion): string | undefined {
  if (version.protobufMessage === undefined) return undefined;
  return messageOfKind(apiVersionOf({ group: kind.group, version: version.name }), kind.kind);
}
