import { expect, test } from 'vitest';
import type { ClusterProperty } from '../../kinds/cluster-property.ts';
import { reportedProperties } from './cluster-properties.ts';

const property = (name: string, value: unknown) => ({ metadata: { name }, spec: { value } }) as ClusterProperty;

test('cluster properties: id, set, long ones and no texts -> stay at home; of the rest the first 32 by name', () => {
  const many = Array.from({ length: 40 }, (_, i) => property(`p${String(i).padStart(2, '0')}`, `${i}`)).reverse();
  const odd = [
    property('cluster.clusterset.k8s.io', 'somebody-else'),
    property('clusterset.k8s.io', 'prod'),
    property('a-long', 'x'.repeat(254)),
    property('a-number', 7),
    { metadata: { name: 'a-null' }, spec: null } as never,
  ];
  const reported = reportedProperties([...odd, ...many]);
  expect(Object.keys(reported)).toEqual(Array.from({ length: 32 }, (_, i) => `p${String(i).padStart(2, '0')}`));
});
