// Turns an accepted definition into the kind that is served.

import { isObject } from '../../base/json.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { DefinedKindRules, Kind, KindBehaviour, KindVersion, ScaleFields } from '../model/kind.ts';
import { apiVersionSchema, kindSchema, objectMetaSchema } from '../schema/object-meta.ts';
import type { Schema } from '../schema/schema.ts';
import { columnsOf } from './columns.ts';
import {
  type CustomResourceDefinition,
  type DefinitionScale,
  type DefinitionVersion,
  storageVersionOf,
} from './definition.ts';
import { fieldNames, findByPath, parseJsonPath } from './json-path.ts';
import { compareVersions } from './version-order.ts';

/** For a definition that passed validation. Served are the names that were accepted, where that has been decided. */
export function kindsFromDefinition(definition: CustomResourceDefinition, rules: DefinedKindRules = {}): Kind {
  const { spec, status } = definition;
  const names = status?.acceptedNames?.kind ? status.acceptedNames : spec.names;
  const versions = spec.versions.toSorted((a, b) => compareVersions(a.name, b.name));
  return {
    group: spec.group,
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    plural: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    isNamespaced: spec.scope === 'Namespaced',
    versions: versions.map(versionOf),
    storageVersion: storageVersionOf(spec),
    schemaRevision: Number(definition.metadata.resourceVersion ?? 0),
    behaviour: { ...behaviourOf(spec.versions), ...rules[`${spec.group}/${names.kind}`] },
  };
}

function versionOf(version: DefinitionVersion): KindVersion {
  const scale = version.subresources?.scale && scaleFieldsOf(version.subresources.scale);
  return {
    name: version.name,
    isServed: version.served,
    schema: withObjectFields(version.schema!.openAPIV3Schema!),
    hasStatus: version.subresources?.status !== undefined,
    columns: columnsOf(version),
    ...(scale && { scale }),
  };
}

/** Undefined for paths that are not names of fields: such a definition is no longer accepted, but may be stored. */
function scaleFieldsOf(scale: DefinitionScale): ScaleFields | undefined {
  const replicas = namesOf(scale.specReplicasPath);
  const statusReplicas = namesOf(scale.statusReplicasPath);
  const selector = namesOf(scale.labelSelectorPath);
  if (replicas === undefined || statusReplicas === undefined) return undefined;
  return { replicas, statusReplicas, selectorOf: (object) => textAt(object, selector) };
}

function namesOf(jsonPath = ''): readonly string[] | undefined {
  const parsed = parseJsonPath(jsonPath);
  const names = parsed.kind === 'parsed' ? fieldNames(parsed.path) : undefined;
  return names?.length === 0 ? undefined : names;
}

function textAt(object: AnyObject, names: readonly string[] | undefined): string {
  const value = names?.reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), object);
  return typeof value === 'string' ? value : '';
}

// The definition's own schema of metadata can only narrow its names.
function withObjectFields(schema: Schema): Schema {
  const { metadata, ...fields } = schema.properties ?? {};
  const narrowed = { ...objectMetaSchema.properties, ...metadata?.properties };
  return {
    ...schema,
    properties: {
      apiVersion: apiVersionSchema,
      kind: kindSchema,
      metadata: {
        ...objectMetaSchema,
        ...(metadata?.required && { required: metadata.required }),
        properties: narrowed,
      },
      ...fields,
    },
  };
}

function behaviourOf(versions: readonly DefinitionVersion[]): KindBehaviour {
  const paths = new Set(
    versions.flatMap(({ selectableFields = [] }) => selectableFields.map(({ jsonPath }) => jsonPath)),
  );
  const common = { nameRule: 'dnsSubdomain', hasGeneration: true } as const;
  if (paths.size === 0) return common;
  return { ...common, selectableFields: Object.fromEntries([...paths].map(selectableField)) };
}

function selectableField(jsonPath: string): [string, (object: AnyObject) => string] {
  const parsed = parseJsonPath(jsonPath);
  if (parsed.kind === 'refused') throw new Error(`selectable field ${jsonPath}: ${parsed.reason}`);
  const select = (object: AnyObject) => {
    const value = findByPath(parsed.path, object)[0];
    return value === undefined || value === null ? '' : String(value);
  };
  return [fieldNames(parsed.path)?.join('.') ?? jsonPath, select];
}
