import { expect, test } from 'vitest';
import { acceptDefinition, isEstablished } from './accept.ts';
import type { CustomResourceDefinition } from './definition.ts';
import { kindsFromDefinition } from './kind-of.ts';
import { exampleDefinition, exampleVersion } from './testing/example.ts';

const now = '2026-01-01T00:00:00Z';
const later = '2026-01-02T00:00:00Z';

function accepted(definition: CustomResourceDefinition): CustomResourceDefinition {
  return { ...definition, status: acceptDefinition(definition, [], now) };
}

function otherKind(names: Partial<CustomResourceDefinition['spec']['names']>, group = 'harbour.example') {
  const plural = names.plural ?? 'ships';
  return kindsFromDefinition(exampleDefinition({ group, names: { plural, kind: 'Ship', ...names } }));
}

test('accept: no conflicts -> names accepted, established, storage version noted', () => {
  const definition = accepted(exampleDefinition());
  expect(definition.status).toEqual({
    conditions: [
      {
        type: 'NamesAccepted',
        status: 'True',
        reason: 'NoConflicts',
        message: 'no conflicts found',
        lastTransitionTime: now,
      },
      {
        type: 'Established',
        status: 'True',
        reason: 'InitialNamesAccepted',
        message: 'the initial names have been accepted',
        lastTransitionTime: now,
      },
    ],
    acceptedNames: definition.spec.names,
    storedVersions: ['v1'],
  });
  expect(isEstablished(definition)).toBe(true);
});

test.each<[string, Parameters<typeof otherKind>[0], string, string]>([
  ['plural is a short name there', { shortNames: ['boats'] }, 'PluralConflict', 'boats'],
  ['singular is taken', { singular: 'boat' }, 'SingularConflict', 'boat'],
  ['short name is a plural there', { plural: 'bt' }, 'ShortNamesConflict', 'bt'],
  ['kind is taken', { kind: 'Boat', singular: 'ship' }, 'KindConflict', 'Boat'],
  ['list kind is taken', { listKind: 'BoatList' }, 'ListKindConflict', 'BoatList'],
])('accept: %s -> not accepted, not established', (_, names, reason, name) => {
  const definition = exampleDefinition();
  const status = acceptDefinition(definition, [otherKind(names)], now);
  expect(status.conditions).toMatchObject([
    { type: 'NamesAccepted', status: 'False', reason, message: `"${name}" is already in use` },
    { type: 'Established', status: 'False', reason: 'NotAccepted' },
  ]);
  expect(isEstablished({ ...definition, status })).toBe(false);
});

test('accept: the same names in another group -> no conflict', () => {
  const other = otherKind({ plural: 'boats', kind: 'Boat' }, 'sea.example');
  expect(acceptDefinition(exampleDefinition(), [other], now).conditions![0]!.status).toBe('True');
});

test('accept: a new short name is taken -> stays served under the names it had', () => {
  const definition = accepted(exampleDefinition());
  definition.spec.names = { ...definition.spec.names, shortNames: ['sh'] };
  const status = acceptDefinition(definition, [otherKind({ shortNames: ['sh'] })], later);
  expect(status.acceptedNames!.shortNames).toEqual(['bt']);
  expect(status.conditions!.map(({ type, status }) => `${type}=${status}`)).toEqual([
    'NamesAccepted=False',
    'Established=True',
  ]);
  expect(kindsFromDefinition({ ...definition, status }).shortNames).toEqual(['bt']);
});

test('accept: nothing changed -> the same status, times included', () => {
  const definition = accepted(exampleDefinition());
  expect(acceptDefinition(definition, [], later)).toEqual(definition.status);
});

test('accept: storage version moves -> both are remembered', () => {
  const definition = accepted(exampleDefinition());
  definition.spec.versions = [exampleVersion({ storage: false }), exampleVersion({ name: 'v2' })];
  expect(acceptDefinition(definition, [], later).storedVersions).toEqual(['v1', 'v2']);
});
