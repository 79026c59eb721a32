// Puts a built-in kind together from what is special about it. Its schema comes from the message table, when it is
// first asked for; defaults and validation are only called with objects whose types are right.

import type { FieldError } from '../../kube/objects/field-error.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { messageOf, messageOfKind, protobufName } from '../messages/messages.ts';
import { hasTypesOf, normalizeMessage } from '../messages/normalize.ts';
import { kindSchemaOf } from '../messages/schemas.ts';
import { ageColumn, nameColumn } from '../model/columns.ts';
import type { Column, Kind, KindBehaviour, KindVersion, NameRule, ScaleFields, StoredAs } from '../model/kind.ts';
import type { Schema } from '../schema/schema.ts';

export interface BuiltinKind<T extends KubernetesObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly nameRule?: NameRule;
  /** Kubernetes counts generations of some kinds only; of most it does not. */
  readonly hasGeneration?: boolean;
  /** The name when absent. Age is put after those always shown, unless it is among them. */
  readonly columns?: readonly Column[];
  readonly hasAge?: boolean;
  readonly scale?: ScaleFields;
  readonly storedAs?: StoredAs;
  /** Fields that the schema requires, but only some objects need: `validate` sees to them. */
  readonly requiredOfSome?: readonly string[];
  readonly applyDefaults?: (object: T) => void;
  readonly validate?: (object: T, previous: T | undefined) => FieldError[];
  readonly selectableFields?: Readonly<Record<string, (object: T) => string>>;
  readonly behaviour?: Omit<
    KindBehaviour,
    'nameRule' | 'hasGeneration' | 'applyDefaults' | 'validate' | 'selectableFields'
  >;
}

export function builtinKind<T extends KubernetesObject>(facts: BuiltinKind<T>): Kind {
  const apiVersion = facts.group === '' ? facts.version : `${facts.group}/${facts.version}`;
  const message = messageOfKind(apiVersion, facts.kind);
  if (message === undefined) throw new Error(`${facts.kind} ${apiVersion} is not in the table of messages`);
  return {
    group: facts.group,
    kind: facts.kind,
    listKind: `${facts.kind}List`,
    plural: facts.plural,
    singular: facts.kind.toLowerCase(),
    shortNames: facts.shortNames ?? [],
    categories: facts.categories ?? [],
    isNamespaced: facts.isNamespaced,
    storageVersion: facts.version,
    ...(facts.storedAs && { storedAs: facts.storedAs }),
    versions: [versionOf(facts, message)],
    behaviour: behaviourOf(facts, message),
  };
}

function versionOf<T extends KubernetesObject>(facts: BuiltinKind<T>, message: string): KindVersion {
  let schema: Schema | undefined;
  return {
    name: facts.version,
    isServed: true,
    get schema() {
      return (schema ??= withoutRequired(kindSchemaOf(message), facts.requiredOfSome ?? []));
    },
    hasStatus: messageOf(message).fields.some((field) => field.name === 'status'),
    columns: columnsOf(facts),
    ...(facts.scale && { scale: facts.scale }),
    protobufMessage: protobufName(message),
  };
}

function withoutRequired(schema: Schema, fields: readonly string[]): Schema {
  if (fields.length === 0) return schema;
  return { ...schema, required: (schema.required ?? []).filter((name) => !fields.includes(name)) };
}

function columnsOf({
  columns = [nameColumn],
  hasAge = true,
}: Pick<BuiltinKind<never>, 'columns' | 'hasAge'>): Column[] {
  const isWide = (column: Column) => column.priority > 0;
  const age = hasAge && !columns.includes(ageColumn) ? [ageColumn] : [];
  return [...columns.filter((column) => !isWide(column)), ...age, ...columns.filter(isWide)];
}

function behaviourOf<T extends KubernetesObject>(facts: BuiltinKind<T>, message: string): KindBehaviour {
  const { applyDefaults, validate, selectableFields, behaviour } = facts;
  const ownBehaviour = {
    // Defaults come before the schema has had its say.
    ...(applyDefaults && { applyDefaults: (object: T) => void (hasTypesOf(message, object) && applyDefaults(object)) }),
    ...(validate && { validate }),
    ...(selectableFields && { selectableFields }),
  } as unknown as Partial<KindBehaviour>;
  return {
    nameRule: facts.nameRule ?? 'dnsSubdomain',
    ...(facts.hasGeneration && { hasGeneration: true }),
    normalize: (object) => normalizeMessage(message, object),
    ...behaviour,
    ...ownBehaviour,
  };
}

/** For the writer of an object whose kind is kept for the tools that bring it. */
export function storedOnly(kind: string, verb: 'runs' | 'enforces' | 'serves'): string {
  return `this home stores the ${kind}; nothing here ${verb} it`;
}
