// CustomResourceDefinition, the kind of which kinds are made. Its rules are in `definitions/`.

import type { FieldError } from '../../model/field-error.ts';
import type { AnyObject } from '../../model/object.ts';
import { applyDefinitionDefaults, type CustomResourceDefinition } from '../definitions/definition.ts';
import { validateDefinition } from '../definitions/validate.ts';
import type { Column, Kind, KindBehaviour } from '../kind.ts';
import { kindSchemaOf } from './schemas.ts';

export const definitionProtobufMessage = 'apiextensions.v1.CustomResourceDefinition';

const createdAt: Column = {
  name: 'Created At',
  type: 'date',
  priority: 0,
  description: 'When the definition was created.',
  value: ({ metadata }) => metadata.creationTimestamp ?? null,
};

const behaviour: KindBehaviour = {
  nameRule: 'dnsSubdomain',
  applyDefaults: (object) => applyDefinitionDefaults(asDefinition(object)),
  validate: (object, previous): FieldError[] =>
    validateDefinition(asDefinition(object), previous === undefined ? undefined : asDefinition(previous)),
};

/** For objects that passed the kind's schema, which has these fields. */
function asDefinition(object: AnyObject): CustomResourceDefinition {
  return object as unknown as CustomResourceDefinition;
}

export const customResourceDefinitionKind: Kind = {
  group: 'apiextensions.k8s.io',
  kind: 'CustomResourceDefinition',
  listKind: 'CustomResourceDefinitionList',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  isNamespaced: false,
  storageVersion: 'v1',
  versions: [
    {
      name: 'v1',
      isServed: true,
      schema: kindSchemaOf(definitionProtobufMessage),
      hasStatus: true,
      columns: [createdAt],
      protobufMessage: definitionProtobufMessage,
    },
  ],
  behaviour,
};
