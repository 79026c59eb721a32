import { expect, test } from 'vitest';
import { testListener } from '../testing/resources.ts';
import { withAbsentListeners } from './absent-listeners.ts';
import { ResourceSet } from './resource-set.ts';
import { View } from './view.ts';

const service = { ...testListener('there', 'a'), isByNameOnly: true as const };

test('absent listeners: a name that is not there -> a listener without routes, the same each time, and in no wildcard', () => {
  const view = withAbsentListeners(new View({ wildcard: [], byName: [new ResourceSet()] }));
  const entry = view.get('listener', 'nothing.shop.svc.clusterset.local:80');
  expect(entry).toMatchObject({ type: 'listener', causes: [], isByNameOnly: true });
  expect(view.get('listener', 'nothing.shop.svc.clusterset.local:80')).toBe(entry);
  expect(view.isInWildcard('listener', 'nothing.shop.svc.clusterset.local:80')).toBe(false);
  expect([...view.wildcard('listener')]).toEqual([]);
  expect(view.get('cluster', 'nothing')).toBeUndefined();
  expect(view.get('route', 'nothing')).toBeUndefined();
});

test('absent listeners: the service comes and goes -> its own listener, then the one without routes', () => {
  const set = new ResourceSet();
  const view = withAbsentListeners(new View({ wildcard: [], byName: [set] }));
  const before = view.get('listener', 'there');
  set.replace('shop/there', [service]);
  expect(view.get('listener', 'there')).toBe(set.get('listener', 'there'));
  set.replace('shop/there', []);
  expect(view.get('listener', 'there')?.version).toBe(before?.version);
});

test('absent listeners: too many names, or too long ones -> nothing is made for them', () => {
  const view = withAbsentListeners(new View({ wildcard: [], byName: [new ResourceSet()] }));
  expect(view.get('listener', 'x'.repeat(301))).toBeUndefined();
  for (let index = 0; index < 1_000; index += 1) expect(view.get('listener', `name-${index}`)).toBeDefined();
  expect(view.get('listener', 'one-more')).toBeUndefined();
  expect(view.get('listener', 'name-0')).toBeDefined();
});
