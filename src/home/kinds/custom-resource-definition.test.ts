import { expect, test } from 'vitest';
import { inOneGo } from '../../base/turns.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { CustomResourceDefinition } from '../definitions/definition.ts';
import { exampleDefinition, exampleVersion } from '../definitions/testing/example.ts';
import { pruneUnknownFields } from '../schema/prune.ts';
import { validateSchema } from '../schema/validate.ts';
import { customResourceDefinitionKind } from './custom-resource-definition.ts';

const { schema } = customResourceDefinitionKind.versions[0]!;
const { applyDefaults, validateInPieces, warnings } = customResourceDefinitionKind.behaviour;

function asObject(definition: unknown): AnyObject {
  return structuredClone(definition) as AnyObject;
}

/** Everything that creating or, with `before`, updating would say. */
function check(definition: unknown, before?: CustomResourceDefinition): string[] {
  const object = asObject(definition);
  applyDefaults!(object);
  const previous = before === undefined ? undefined : asObject(before);
  return [...validateSchema(schema, object), ...inOneGo(validateInPieces!(object, previous))].map(
    ({ field, message }) => `${field}: ${message}`,
  );
}

test('definition: complete -> taken, nothing unknown in it', () => {
  expect(pruneUnknownFields(schema, asObject(exampleDefinition()))).toEqual([]);
  expect(check(exampleDefinition())).toEqual([]);
});

test('definition: singular, listKind and conversion left out -> filled in', () => {
  const object = asObject(exampleDefinition({ names: { plural: 'boats', kind: 'Boat' } }));
  applyDefaults!(object);
  expect(object['spec']).toMatchObject({
    names: { singular: 'boat', listKind: 'BoatList' },
    conversion: { strategy: 'None' },
  });
});

test.each<[string, Partial<CustomResourceDefinition['spec']>, string[]]>([
  [
    'name does not match plural and group',
    { names: { plural: 'ships', kind: 'Boat' } },
    ['metadata.name: Invalid value: "boats.harbour.example": must be spec.names.plural+"."+spec.group'],
  ],
  [
    'unknown scope',
    { scope: 'World' as 'Cluster' },
    ['spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"'],
  ],
  [
    'no versions',
    { versions: [] },
    ['spec.versions: Invalid value: []: exactly one version must be the storage version'],
  ],
  [
    'two storage versions',
    { versions: [exampleVersion(), exampleVersion({ name: 'v2' })] },
    ['spec.versions: Invalid value: ["v1","v2"]: exactly one version must be the storage version'],
  ],
  [
    'one version twice',
    { versions: [exampleVersion(), exampleVersion({ storage: false })] },
    ['spec.versions: Invalid value: ["v1","v1"]: every version needs a name of its own'],
  ],
  [
    'no schema',
    { versions: [exampleVersion({ schema: {} })] },
    ['spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required'],
  ],
  [
    'schema that is not structural',
    { versions: [exampleVersion({ schema: { openAPIV3Schema: { type: 'object', properties: { spec: {} } } } })] },
    [
      'spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields',
    ],
  ],
  [
    'conversion by webhook',
    { conversion: { strategy: 'Webhook' } },
    [
      'spec.conversion.strategy: Invalid value: "Webhook": this server does not call conversion webhooks: versions may differ in apiVersion alone (None)',
    ],
  ],
  [
    'unknown fields kept everywhere',
    { preserveUnknownFields: true },
    [
      'spec.preserveUnknownFields: Invalid value: true: must not be true; x-kubernetes-preserve-unknown-fields in the schema does the same',
    ],
  ],
  [
    'kind and list kind the same',
    { names: { plural: 'boats', kind: 'Boat', listKind: 'Boat' } },
    ['spec.names.listKind: Invalid value: "Boat": kind and listKind may not be the same'],
  ],
  [
    'column of an unknown type and a path that is none',
    { versions: [exampleVersion({ additionalPrinterColumns: [{ name: 'A', type: 'text', jsonPath: 'spec' }] })] },
    [
      'spec.versions[0].additionalPrinterColumns[0].type: Unsupported value: "text": supported values: "integer", "number", "string", "boolean", "date"',
      'spec.versions[0].additionalPrinterColumns[0].jsonPath: Invalid value: "spec": must be a simple json path starting with .',
    ],
  ],
  [
    'more columns than anybody reads',
    {
      versions: [
        exampleVersion({
          additionalPrinterColumns: Array.from({ length: 101 }, () => ({
            name: 'A',
            type: 'string',
            jsonPath: '.spec',
          })),
        }),
      ],
    },
    ['spec.versions[0].additionalPrinterColumns: Too many: 101: must have at most 100 items'],
  ],
  [
    'selectable fields that cannot be',
    {
      versions: [
        exampleVersion({
          selectableFields: [
            { jsonPath: '.metadata.name' },
            { jsonPath: '.spec' },
            { jsonPath: '.spec.no' },
            { jsonPath: '.a[0]' },
          ],
        }),
      ],
    },
    [
      'spec.versions[0].selectableFields[0].jsonPath: Forbidden: must not point to fields in metadata',
      'spec.versions[0].selectableFields[1].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer',
      'spec.versions[0].selectableFields[2].jsonPath: Invalid value: ".spec.no": does not exist in the schema',
      'spec.versions[0].selectableFields[3].jsonPath: Invalid value: ".a[0]": must be a simple json path of field names alone',
    ],
  ],
])('definition: %s -> refused with its path', (_, over, expected) => {
  expect(check(exampleDefinition(over))).toEqual(expected);
});

test('definition: spec missing, names missing -> what is required, nothing else', () => {
  const { spec: _spec, ...rest } = exampleDefinition();
  expect(check(rest)).toEqual(['spec: Required value']);
  expect(check({ ...rest, spec: { group: 'a.b', versions: [] } })).toEqual([
    'spec.names: Required value',
    'spec.scope: Required value',
  ]);
});

test('definition: group of Kubernetes without approval -> refused', () => {
  const definition = exampleDefinition({ group: 'harbour.k8s.io' });
  definition.metadata.name = 'boats.harbour.k8s.io';
  expect(check(definition)).toEqual([
    'metadata.annotations[api-approved.kubernetes.io]: Required value: groups of Kubernetes are for definitions it has approved',
  ]);
});

test('definition: established, then scope and kind change -> immutable', () => {
  const before = exampleDefinition();
  before.status = {
    conditions: [
      { type: 'Established', status: 'True', reason: 'r', message: 'm', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
  };
  const now = exampleDefinition({ scope: 'Cluster', names: { plural: 'boats', kind: 'Ship' } });
  expect(check(now, before)).toEqual([
    'spec.scope: Invalid value: "Cluster": field is immutable',
    'spec.names.kind: Invalid value: "Ship": field is immutable',
  ]);
});

// An earlier release may have taken a schema that is refused today: its status and labels can still be written.
test('definition: a schema that is refused now, stored before -> stays; changed -> refused', () => {
  const wrong = (description: string) =>
    exampleVersion({ schema: { openAPIV3Schema: { type: 'object', description, properties: { spec: {} } } } });
  const before = exampleDefinition({ versions: [wrong('a')] });
  expect(check(before)).toHaveLength(1);
  const relabelled = { ...before, metadata: { ...before.metadata, labels: { a: 'b' } } };
  expect(check(relabelled, before)).toEqual([]);
  const refused = 'spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: ';
  expect(check(exampleDefinition({ versions: [wrong('b')] }), before)).toEqual([expect.stringContaining(refused)]);
  const other = { ...wrong('a'), name: 'v2' };
  expect(check(exampleDefinition({ versions: [other] }), before)).toEqual([expect.stringContaining(refused)]);
});

test('definition: a version that objects are stored in is removed -> refused', () => {
  const before = exampleDefinition();
  before.status = { storedVersions: ['v1'] };
  const now = {
    ...exampleDefinition({ versions: [exampleVersion({ name: 'v2' })] }),
    status: { storedVersions: ['v1'] },
  };
  expect(check(now, before)).toEqual([
    expect.stringMatching(/^status\.storedVersions\[0\]: Invalid value: "v1": objects may be stored/),
  ]);
});

test('definition: CEL rules with what is not here -> warnings that say where', () => {
  const version = exampleVersion();
  version.schema = {
    openAPIV3Schema: {
      type: 'object',
      properties: { spec: { type: 'string', 'x-kubernetes-validations': [{ rule: 'isIP(self)' }] } },
    },
  };
  expect(warnings!(asObject(exampleDefinition({ versions: [version] })))).toEqual([
    'x-kubernetes-validations are stored but not enforced by this server: isIP() in spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule',
  ]);
  expect(warnings!(asObject(exampleDefinition()))).toEqual([]);
});

test('definition: a scale subresource -> its paths are field names below spec and status', () => {
  const refused = (scale: object) =>
    check(exampleDefinition({ versions: [exampleVersion({ subresources: { scale: scale as never } })] }));
  const paths = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };
  expect(refused(paths)).toEqual([]);
  expect(refused({ ...paths, labelSelectorPath: '.status.labels.selector' })).toEqual([]);
  const at = 'spec.versions[0].subresources.scale';
  expect(refused({ ...paths, specReplicasPath: '' })).toEqual([
    expect.stringContaining(`${at}.specReplicasPath: Required`),
  ]);
  expect(refused({ ...paths, specReplicasPath: '.status.replicas' })).toEqual([
    `${at}.specReplicasPath: Invalid value: ".status.replicas": should be a json path under .spec`,
  ]);
  expect(refused({ ...paths, statusReplicasPath: '.status.list[0]' })).toEqual([
    `${at}.statusReplicasPath: Invalid value: ".status.list[0]": must be a simple json path of field names alone`,
  ]);
  expect(refused({ ...paths, labelSelectorPath: '.metadata.labels' })).toEqual([
    `${at}.labelSelectorPath: Invalid value: ".metadata.labels": should be a json path under .spec or .status`,
  ]);
});
