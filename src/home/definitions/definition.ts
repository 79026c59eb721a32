// A CustomResourceDefinition as it looks once its own schema has been checked.

import type { Condition, KubernetesObject } from '../../kube/objects/object.ts';
import type { Schema } from '../schema/schema.ts';

export interface CustomResourceDefinition extends KubernetesObject {
  spec: DefinitionSpec;
  status?: DefinitionStatus;
}

export interface DefinitionSpec {
  group: string;
  names: DefinitionNames;
  scope: 'Cluster' | 'Namespaced';
  versions: DefinitionVersion[];
  conversion?: { strategy: string; webhook?: unknown };
  preserveUnknownFields?: boolean;
}

export interface DefinitionNames {
  plural: string;
  singular?: string;
  shortNames?: string[];
  kind: string;
  listKind?: string;
  categories?: string[];
}

export interface DefinitionVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean;
  deprecationWarning?: string;
  schema?: { openAPIV3Schema?: Schema };
  subresources?: { status?: object; scale?: DefinitionScale };
  additionalPrinterColumns?: PrinterColumn[];
  selectableFields?: { jsonPath: string }[];
}

export interface DefinitionScale {
  specReplicasPath: string;
  statusReplicasPath: string;
  labelSelectorPath?: string;
}

export interface PrinterColumn {
  name: string;
  type: string;
  format?: string;
  description?: string;
  priority?: number;
  jsonPath: string;
}

export interface DefinitionStatus {
  conditions?: Condition[];
  acceptedNames?: DefinitionNames;
  storedVersions?: string[];
  observedGeneration?: number;
}

/** Fills in the names that follow from the kind, and the only conversion there is. */
export function applyDefinitionDefaults(definition: CustomResourceDefinition): void {
  const { spec } = definition;
  if (spec?.names?.kind !== undefined) {
    spec.names.singular ||= spec.names.kind.toLowerCase();
    spec.names.listKind ||= `${spec.names.kind}List`;
  }
  if (spec !== undefined) spec.conversion ??= { strategy: 'None' };
}

export function storageVersionOf(spec: DefinitionSpec): string {
  return spec.versions.find(({ storage }) => storage)!.name;
}
