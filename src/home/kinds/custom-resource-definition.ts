// CustomResourceDefinition, the kind of which kinds are made. Its rules are in `definitions/`.

import type { AnyObject } from '../../kube/objects/object.ts';
import { applyDefinitionDefaults, type CustomResourceDefinition } from '../definitions/definition.ts';
import { definitionWarnings, validateDefinition } from '../definitions/validate.ts';
import { nameColumn } from '../model/columns.ts';
import type { Column, Kind } from '../model/kind.ts';
import { builtinKind } from './builtin.ts';

const createdAtColumn: Column = {
  name: 'Created At',
  type: 'date',
  description: 'When the definition was created',
  priority: 0,
  value: ({ metadata }) => metadata.creationTimestamp ?? null,
};

const builtin = builtinKind<CustomResourceDefinition>({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  isNamespaced: false,
  hasGeneration: true,
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  applyDefaults: applyDefinitionDefaults,
  behaviour: {
    validateInPieces: (object, previous) =>
      validateDefinition(asDefinition(object), previous && asDefinition(previous)),
    warnings: (object) => definitionWarnings(asDefinition(object)),
  },
});

function asDefinition(object: AnyObject): CustomResourceDefinition {
  return object as unknown as CustomResourceDefinition;
}

export const customResourceDefinitionKind: Kind = {
  ...builtin,
  versions: builtin.versions.map((version) => ({ ...version, columns: [nameColumn, createdAtColumn] })),
};
