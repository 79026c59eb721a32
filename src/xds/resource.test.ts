import { expect, test } from 'vitest';
import { compareResources, type XdsResource, type XdsType } from './resource.ts';

test('resources: any input order -> by type, then by name in code units', () => {
  const made = [make('listener', 'a'), make('cluster', 'b'), make('cluster', 'B'), make('endpoints', 'z')];
  const names = made.sort(compareResources).map(({ type, name }) => `${type} ${name}`);
  expect(names).toEqual(['cluster B', 'cluster b', 'endpoints z', 'listener a']);
});

function make(type: XdsType, name: string): XdsResource {
  return { type, name, body: {}, causes: [] };
}
