import { expect, test } from 'vitest';
import type { AnyObject } from '../../kube/objects/object.ts';
import { applySchemaDefaults } from '../schema/defaults.ts';
import { pruneUnknownFields } from '../schema/prune.ts';
import { validateSchema } from '../schema/validate.ts';
import { kindsFromDefinition } from './kind-of.ts';
import { exampleDefinition, exampleVersion } from './testing/example.ts';
import { compareVersions } from './version-order.ts';

const boat = (over: object = {}) =>
  ({
    apiVersion: 'harbour.example/v1',
    kind: 'Boat',
    metadata: { name: 'anna', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { size: 2 },
    ...over,
  }) as AnyObject;

const nowMs = Date.parse('2026-01-01T00:03:20Z');

test('definition: accepted -> its names, scope and storage version are those of the kind', () => {
  const kind = kindsFromDefinition(exampleDefinition());
  expect(kind).toMatchObject({
    group: 'harbour.example',
    kind: 'Boat',
    listKind: 'BoatList',
    plural: 'boats',
    singular: 'boat',
    shortNames: ['bt'],
    categories: ['all'],
    isNamespaced: true,
    storageVersion: 'v1',
  });
  expect(kind.versions[0]).toMatchObject({ name: 'v1', isServed: true, hasStatus: true });
  expect(kind.versions[0]!.protobufMessage).toBeUndefined();
});

test('definition: schema -> objects are defaulted, pruned and validated, metadata known', () => {
  const { schema } = kindsFromDefinition(exampleDefinition()).versions[0]!;
  const object = boat({ spec: { size: 0, depth: 3 } });
  expect(pruneUnknownFields(schema, object)).toEqual(['spec.depth']);
  applySchemaDefaults(schema, object);
  expect(object['spec']).toEqual({ size: 0, colour: 'red' });
  expect(validateSchema(schema, object).map(({ field }) => field)).toEqual(['spec.size']);
});

test('definition: pattern on metadata.name -> holds, and the rest of metadata stays known', () => {
  const version = exampleVersion();
  const { openAPIV3Schema } = version.schema!;
  const metadata = { type: 'object', properties: { name: { type: 'string', pattern: '^b' } } } as const;
  version.schema = {
    openAPIV3Schema: { ...openAPIV3Schema!, properties: { ...openAPIV3Schema!.properties, metadata } },
  };
  const { schema } = kindsFromDefinition(exampleDefinition({ versions: [version] })).versions[0]!;
  const object = boat({ metadata: { name: 'anna', labels: { a: 'b' } } });
  expect(pruneUnknownFields(schema, object)).toEqual([]);
  expect(validateSchema(schema, object).map(({ field }) => field)).toEqual(['metadata.name']);
});

test('definition: several versions -> in the order clients should prefer', () => {
  const names = ['v1alpha1', 'foo', 'v1', 'v1beta2', 'v10', 'v2alpha1', 'v2', 'v1beta1', 'bar'];
  expect(names.sort(compareVersions)).toEqual([
    ...['v10', 'v2', 'v1', 'v1beta2', 'v1beta1', 'v2alpha1', 'v1alpha1'],
    ...['bar', 'foo'],
  ]);
});

test('definition: no printer columns -> name and age', () => {
  const { columns } = kindsFromDefinition(exampleDefinition()).versions[0]!;
  expect(columns.map(({ name }) => name)).toEqual(['Name', 'Age']);
  expect(columns.map(({ value }) => value(boat(), nowMs))).toEqual(['anna', '3m20s']);
});

test('definition: printer columns -> the name and those alone; of several values the first, of a list all', () => {
  const version = exampleVersion({
    additionalPrinterColumns: [
      { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
      { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
      { name: 'Crew', type: 'string', jsonPath: '.spec.crew[*].name', priority: 1 },
      { name: 'Ports', type: 'string', jsonPath: '.spec.ports' },
      { name: 'Names', type: 'string', jsonPath: '.spec.crew' },
      { name: 'Holds', type: 'string', jsonPath: '.spec.holds' },
      { name: 'Built', type: 'date', jsonPath: '.metadata.creationTimestamp' },
      { name: 'Odd', type: 'boolean', jsonPath: '.spec.size' },
    ],
  });
  const { columns } = kindsFromDefinition(exampleDefinition({ versions: [version] })).versions[0]!;
  const object = boat({
    spec: { size: 2, crew: [{ name: 'a' }, { name: 'b' }], ports: ['x', 7], holds: [{ of: 'oil', t: 3 }] },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  });
  expect(columns.map(({ name, value }) => [name, value(object, nowMs)])).toEqual([
    ['Name', 'anna'],
    ['Size', 2],
    ['Ready', 'True'],
    ['Crew', 'a'],
    ['Ports', 'x,7'],
    ['Names', 'a,b'],
    ['Holds', '[{"of":"oil","t":3}]'],
    ['Built', '3m20s'],
    ['Odd', null],
  ]);
  expect(columns.map(({ value }) => value(boat(), nowMs))).toEqual([
    'anna',
    2,
    null,
    null,
    null,
    null,
    null,
    '3m20s',
    null,
  ]);
  expect(columns[3]!.priority).toBe(1);
});

test('definition: selectable fields -> named without the leading dot, empty where absent', () => {
  const version = exampleVersion({ selectableFields: [{ jsonPath: '.spec.size' }, { jsonPath: '.spec.colour' }] });
  const { selectableFields } = kindsFromDefinition(exampleDefinition({ versions: [version] })).behaviour;
  expect(Object.keys(selectableFields!)).toEqual(['spec.size', 'spec.colour']);
  expect(selectableFields!['spec.size']!(boat())).toBe('2');
  expect(selectableFields!['spec.colour']!(boat())).toBe('');
});
