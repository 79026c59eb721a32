import { describe, expect, test } from 'vitest';
import type { Cluster } from '../kinds/cluster.ts';
import { localityData, localityOf, readLocality } from './locality.ts';

const cluster = (name: string, place: { zone?: string; region?: string }): Cluster => ({
  apiVersion: 'portolan.dev/v1alpha1',
  kind: 'Cluster',
  metadata: { name },
  spec: { namespace: `prod-m-${name}`, ...place },
});

describe('locality of the set', () => {
  test('locality of the set: written and read -> the same, members without a place left out', () => {
    const members = [
      cluster('west', { region: 'us' }),
      cluster('east', { zone: 'eu-1', region: 'eu' }),
      cluster('x', {}),
    ];
    const locality = localityOf('NearestFirst', members);
    expect(readLocality({ data: localityData(locality) })).toEqual(locality);
    expect([...locality.clusters.keys()]).toEqual(['east', 'west']);
  });

  const nonsense = [undefined, '', '7', 'null', '[]', '{"east":7}', '{"east":{"zone":7,"region":null}}', '{'];
  for (const places of nonsense) {
    test(`locality of the set: places are ${places} -> nobody is anywhere`, () => {
      const data: Record<string, string> = places === undefined ? {} : { places };
      const { preference, clusters } = readLocality({ data });
      expect(preference).toBe('Spread');
      expect(clusters.get('east') ?? {}).toEqual({});
    });
  }
});
