// The description of a kind: its names, its versions and its special rules. Built-in kinds are
// listed in `kinds/`, the others come from CustomResourceDefinitions; nothing else in the request path tells them apart.

import type { Pieces } from '../../base/turns.ts';
import type { FieldError } from '../../kube/objects/field-error.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { Schema } from '../schema/schema.ts';
import type { Compare, Store, Write } from '../store/store.ts';
import type { User } from './access.ts';

export interface Kind {
  readonly group: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly isNamespaced: boolean;
  /** In the order in which clients should prefer them. */
  readonly versions: readonly KindVersion[];
  /** All versions are stored in this one; they differ in nothing but their apiVersion. */
  readonly storageVersion: string;
  /** Set for a kind that shows the stored objects of another one in words of its own. */
  readonly storedAs?: StoredAs;
  /** Objects stored at an earlier revision may lack defaults of the schema, or have fields that it no longer knows. */
  readonly schemaRevision?: number;
  readonly behaviour: KindBehaviour;
}

/** The kind in whose words the objects lie in the store. Both directions leave what is in the wanted words already as it is. */
export interface StoredAs {
  readonly group: string;
  readonly plural: string;
  fromStored(object: AnyObject): AnyObject;
  toStored(object: AnyObject): AnyObject;
}

export interface KindVersion {
  readonly name: string;
  readonly isServed: boolean;
  readonly schema: Schema;
  readonly hasStatus: boolean;
  /** The name comes before them by itself, unless one of them has the format `name`. */
  readonly columns: readonly Column[];
  /** Absent if the kind has no `scale` subresource. */
  readonly scale?: ScaleFields;
  /** Full name of the protobuf message whose encoding is accepted as a request body; absent for custom kinds. */
  readonly protobufMessage?: string;
}

/** Where an object has what its Scale shows, each as the names of fields that lead there. */
export interface ScaleFields {
  readonly replicas: readonly string[];
  readonly statusReplicas: readonly string[];
  /** The selector of its Pods, as text; empty if there is none. */
  selectorOf(object: AnyObject): string;
}

export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format?: string;
  readonly description?: string;
  /** 0 is always shown, above 0 only with -o wide. */
  readonly priority: number;
  readonly value: (object: AnyObject, nowMs: number) => string | number | boolean | null;
}

export type NameRule = 'dnsSubdomain' | 'dnsLabel' | 'dns1035Label' | 'pathSegment';

export interface KindBehaviour {
  readonly nameRule: NameRule;
  /** Counts changes of what is wanted in metadata.generation. Custom kinds all do, some built-in kinds do not. */
  readonly hasGeneration?: boolean;
  /** An update without a resourceVersion creates the object, and is refused if the object is there. */
  readonly isCreatedByUpdate?: boolean;
  /** A write of its status may change its labels and annotations too. */
  readonly isMetadataInStatus?: boolean;
  /** Verbs served; all of them when absent. Reviews serve `create` alone. */
  readonly verbs?: readonly string[];
  /** Called first on what a client sent, before the schema looks at it: brings it into the form the schema describes. */
  normalize?(object: AnyObject): void;
  /** Beyond the defaults of the schema. Changes the object in place. */
  applyDefaults?(object: AnyObject): void;
  /** `validate` reads objects of any shape, so it runs although the schema found wrong types. */
  readonly validatesAnyShape?: boolean;
  /** Beyond the schema. `previous` is absent on create. */
  validate?(object: AnyObject, previous: AnyObject | undefined): FieldError[];
  /** Instead of `validate`, for rules that take long on a large object. */
  validateInPieces?(object: AnyObject, previous: AnyObject | undefined): Pieces<FieldError[]>;
  /** Warnings for the writer of an accepted object: texts for the Warning header. */
  warnings?(object: AnyObject): string[];
  /** Field selectors beyond metadata.name and metadata.namespace. */
  readonly selectableFields?: Readonly<Record<string, (object: AnyObject) => string>>;
  /** Last look before a write; may change the object, refuse by throwing StatusError, and add to the commit. */
  admit?(admission: Admission): Promise<void>;
  /** Answers a create without storing anything. */
  review?(object: AnyObject, context: RequestContext): Promise<AnyObject>;
  /** PUT to `<name>/finalize`: what is stored when the client wants the finalizers of `wanted`. */
  finalize?(stored: AnyObject, wanted: AnyObject): AnyObject;
  /** POST to `<name>/<subresource>`, such as a ServiceAccount's token. */
  readonly subresources?: Readonly<Record<string, Subresource>>;
}

interface Subresource {
  /** The kind of the body and of the answer. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  create(body: AnyObject, parent: AnyObject, context: RequestContext): Promise<AnyObject>;
}

export interface RequestContext {
  readonly user: User;
  readonly nowMs: number;
  readonly isDryRun: boolean;
  readonly store: Store;
}

export interface Admission extends RequestContext {
  readonly operation: 'create' | 'update' | 'delete';
  /** Empty for the main resource. */
  readonly subresource: string;
  /** The object to be stored; on delete, the present one. */
  readonly object: AnyObject;
  readonly previous: AnyObject | undefined;
  /** Written in the same commit as the object, or not at all. A failed compare makes the request be tried again. */
  readonly alsoCompare: Compare[];
  readonly alsoWrite: Write[];
}

export function keyPrefixOf(type: { readonly group: string; readonly plural: string }): string {
  return `${registryRoot}${type.group === '' ? 'core' : type.group}/${type.plural}/`;
}

export const registryRoot = '/registry/';

/** Rules of a kind that comes from a definition: what its schema cannot express. By `group/Kind`. */
export type DefinedKindRules = Readonly<
  Record<string, Pick<KindBehaviour, 'validatesAnyShape' | 'validate' | 'warnings' | 'admit'>>
>;
