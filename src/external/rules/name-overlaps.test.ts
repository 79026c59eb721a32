// Two resources with the same domain: both are told which one decides.

import { expect, test } from 'vitest';
import { externalService } from '../testing/services.ts';
import { NameOverlaps } from './name-overlaps.ts';
import { rulesOf } from './rule.ts';

function rules(name: string, protocol: string, value = 'api.example.com', createdAt = '2026-01-01T00:00:00Z') {
  const object = externalService(`{ match: [{ type: Domain, value: "${value}", port: 443, protocol: ${protocol} }] }`, {
    name,
  });
  return rulesOf({ ...object, metadata: { ...object.metadata, creationTimestamp: createdAt } });
}

test('names: two resources with the same domain -> both hear who wins; one goes -> the other has nothing to say', () => {
  const index = new NameOverlaps();
  const [old, young] = [rules('b', 'tls'), rules('a', 'tls', 'api.example.com', '2026-02-02T00:00:00Z')];
  index.add(young);
  index.add(old);
  const text = 'a and b match the same name api.example.com; b wins on port 443: it is older, or comes first by name';
  expect([index.textsOf(old), index.textsOf(young)]).toEqual([[text], [text]]);
  expect(index.neighbours(old)).toEqual(new Set(['a', 'b']));
  index.remove(old);
  expect(index.textsOf(young)).toEqual([]);
});

test.each([
  ['tls', 'http', 0],
  ['http', 'grpc', 0],
  ['http2', 'grpc', 1],
  ['http', 'http', 1],
])('names: %s and %s for one domain -> %d overlaps', (one, other, count) => {
  const index = new NameOverlaps();
  const [first, second] = [rules('a', one), rules('b', other)];
  index.add([...first, ...second]);
  expect(index.textsOf(second)).toHaveLength(count);
});

test('names: a wildcard and a name below it -> no overlap: the exact one is meant; two equal wildcards -> one', () => {
  const index = new NameOverlaps();
  const [exact, wild, same] = [
    rules('a', 'tls'),
    rules('b', 'tls', '*.example.com'),
    rules('c', 'tls', '*.example.com'),
  ];
  index.add([...exact, ...wild]);
  expect(index.textsOf(exact)).toEqual([]);
  index.add(same);
  expect(index.textsOf(same)).toEqual([
    'b and c match the same name *.example.com; b wins on port 443: it is older, or comes first by name',
  ]);
});
