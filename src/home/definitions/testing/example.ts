// A small definition for tests to start from.

import type { CustomResourceDefinition, DefinitionVersion } from '../definition.ts';

export function exampleVersion(over: Partial<DefinitionVersion> = {}): DefinitionVersion {
  return {
    name: 'v1',
    served: true,
    storage: true,
    schema: {
      openAPIV3Schema: {
        type: 'object',
        required: ['spec'],
        properties: {
          spec: {
            type: 'object',
            required: ['size'],
            properties: { size: { type: 'integer', minimum: 1 }, colour: { type: 'string', default: 'red' } },
          },
          status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    },
    subresources: { status: {} },
    ...over,
  };
}

export function exampleDefinition(over: Partial<CustomResourceDefinition['spec']> = {}): CustomResourceDefinition {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'boats.harbour.example' },
    spec: {
      group: 'harbour.example',
      scope: 'Namespaced',
      names: {
        plural: 'boats',
        singular: 'boat',
        kind: 'Boat',
        listKind: 'BoatList',
        shortNames: ['bt'],
        categories: ['all'],
      },
      versions: [exampleVersion()],
      ...over,
    },
  };
}
