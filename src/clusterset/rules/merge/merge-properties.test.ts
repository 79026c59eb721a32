import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { explainMerge } from './explain-merge.ts';
import { mergeShards } from './merge.ts';
import type { Shard, ShardPort } from './shard.ts';

const port: fc.Arbitrary<ShardPort> = fc.record({
  name: fc.constantFrom('', 'http', 'web', 'admin'),
  protocol: fc.constantFrom('TCP' as const, 'UDP' as const),
  port: fc.constantFrom(80, 81, 8080),
  appProtocol: fc.option(fc.constantFrom('h2c', 'http'), { nil: undefined }),
});

const shard = (cluster: string): fc.Arbitrary<Shard> =>
  fc.record({
    cluster: fc.constant(cluster),
    exportedAt: fc.constantFrom('2020-01-01T00:00:00Z', '2021-01-01T00:00:00Z', '2022-01-01T00:00:00Z', 'nonsense'),
    type: fc.constantFrom('ClusterSetIP' as const, 'Headless' as const),
    ports: fc.array(port, { maxLength: 4 }),
    sessionAffinity: fc.constantFrom('None' as const, 'ClientIP' as const),
    affinityTimeoutSeconds: fc.option(fc.constantFrom(60, 10_800), { nil: undefined }),
    internalTrafficPolicy: fc.option(fc.constantFrom('Cluster', 'Local'), { nil: undefined }),
    trafficDistribution: fc.option(fc.constant('PreferClose'), { nil: undefined }),
    ipFamilies: fc.constantFrom(['IPv4' as const], ['IPv6' as const], ['IPv4' as const, 'IPv6' as const]),
    labels: fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('1', '2')),
    annotations: fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('1', '2')),
  });

const request = fc.record({
  shards: fc.tuple(...['a', 'b', 'c', 'd'].map(shard)).chain((all) => fc.subarray(all, { minLength: 1 })),
  ports: fc.constantFrom('union' as const, 'intersection' as const),
});

describe('merge: properties', () => {
  test('merge: any order of clusters and of their ports -> the same result, conflicts and explanation included', () => {
    const shuffled = request.chain((base) =>
      fc.tuple(
        fc.constant(base),
        fc.shuffledSubarray(base.shards, { minLength: base.shards.length, maxLength: base.shards.length }),
        fc.boolean(),
      ),
    );
    fc.assert(
      fc.property(shuffled, ([base, shards, reversed]) => {
        const other = {
          ...base,
          shards: shards.map((one) => (reversed ? { ...one, ports: one.ports.toReversed() } : one)),
        };
        const strip = (merge: ReturnType<typeof mergeShards>) => ({ ...merge, decider: merge?.decider.cluster });
        expect(strip(mergeShards(other))).toEqual(strip(mergeShards(base)));
        expect(explainMerge(other)).toEqual(explainMerge(base));
      }),
      { numRuns: 500 },
    );
  });

  test('merge: any input -> no port name and no (protocol, port) twice', () => {
    fc.assert(
      fc.property(request, (base) => {
        const ports = mergeShards(base)!.ports.filter(({ isExposed }) => isExposed);
        expect(new Set(ports.map(({ name }) => name)).size).toBe(ports.length);
        expect(new Set(ports.map((one) => `${one.protocol}/${one.port}`)).size).toBe(ports.length);
      }),
      { numRuns: 500 },
    );
  });

  test('merge: any input -> a cluster serves a port exactly if it is of the merged type and declares its number', () => {
    fc.assert(
      fc.property(request, (base) => {
        const merge = mergeShards(base)!;
        for (const one of base.shards) {
          const served = new Set(merge.portNames.get(one.cluster)?.values());
          for (const merged of merge.ports) {
            const hasNumber = firstOfEach(one.ports).some(
              (own) => own.protocol === merged.protocol && own.port === merged.port,
            );
            const expected = one.type === merge.type && merged.isExposed && hasNumber;
            expect(served.has(merged.name) && merged.isExposed).toBe(expected);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test('merge: intersection -> every cluster of the import serves every port', () => {
    fc.assert(
      fc.property(request, (base) => {
        const merge = mergeShards({ ...base, ports: 'intersection' })!;
        const names = merge.ports.filter(({ isExposed }) => isExposed).map(({ name }) => name);
        for (const cluster of merge.clusters) {
          expect([...merge.portNames.get(cluster)!.values()].sort()).toEqual(names.toSorted());
        }
      }),
      { numRuns: 500 },
    );
  });

  test('merge: no conflict -> all clusters are part of it and all say the same', () => {
    fc.assert(
      fc.property(request, (base) => {
        const merge = mergeShards(base)!;
        if (merge.conflicts.length > 0) return;
        expect(merge.excluded).toEqual([]);
        expect(merge.clusters).toHaveLength(base.shards.length);
        expect(explainMerge(base)!.fields.flatMap(({ says }) => says.filter(({ agrees }) => !agrees))).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });

  test('merge: the decider leaves -> what the explanation said beforehand is what happens [003-50]', () => {
    fc.assert(
      fc.property(request, (base) => {
        const explained = explainMerge(base)!;
        const rest = base.shards.filter(({ cluster }) => cluster !== explained.decider);
        const after = explainMerge({ ...base, shards: rest });
        const changes = explained.ifLeft.find(({ cluster }) => cluster === explained.decider)!.changes;
        if (after === undefined) {
          expect(changes).toHaveLength(1);
          return;
        }
        const differs = after.fields.filter(({ value }, index) => value !== explained.fields[index]!.value);
        for (const field of differs) expect(changes.some((text) => text.startsWith(field.field))).toBe(true);
        if (changes.length === 0) expect(differs).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

function firstOfEach(ports: readonly ShardPort[]): ShardPort[] {
  const sorted = ports.toSorted(
    (a, b) =>
      a.port - b.port ||
      (a.protocol < b.protocol ? -1 : a.protocol > b.protocol ? 1 : 0) ||
      (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
  );
  const kept: ShardPort[] = [];
  for (const one of sorted) {
    if (!kept.some((k) => k.name === one.name || (k.port === one.port && k.protocol === one.protocol))) kept.push(one);
  }
  return kept;
}
