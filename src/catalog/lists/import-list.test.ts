import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ServiceImport } from '../../clusterset/kinds/service-import.ts';
import { importedFromAnnotation } from '../../clusterset/rules/routing/import-as.ts';
import { routingAnnotation } from '../../clusterset/rules/routing/routing.ts';
import type { List } from '../../kube/client/client.ts';
import { factsOfImport, trafficOfImport } from '../facts/facts.ts';
import { createImportListReader } from './import-list.ts';

const word = fc.oneof(fc.stringMatching(/^[a-z0-9.-]{1,40}$/), fc.constantFrom('größe', 'with "quotes"', ''));
const noise = fc.dictionary(word, fc.oneof(word, fc.array(word, { maxLength: 3 }), fc.constant(null)), { maxKeys: 3 });
const orNull = <T>(value: fc.Arbitrary<T>) => fc.oneof(value, fc.constant(null));
const port = fc.record(
  { name: word, port: fc.integer({ min: 1, max: 65_535 }), protocol: fc.constantFrom('TCP', 'UDP'), appProtocol: word },
  { requiredKeys: ['port'] },
);

const someImport = fc.record(
  {
    metadata: fc.record({
      uid: word,
      name: word,
      labels: noise,
      annotations: orNull(
        fc.record({ [routingAnnotation]: word, [importedFromAnnotation]: word, other: word }, { requiredKeys: [] }),
      ),
      namespace: word,
      resourceVersion: fc.nat().map(String),
    }),
    spec: fc.record(
      {
        type: fc.constantFrom('ClusterSetIP', 'Headless'),
        ips: orNull(fc.array(fc.constantFrom('243.0.0.7', 'fd00::7', 'nonsense'), { maxLength: 2 })),
        ports: orNull(fc.array(port, { maxLength: 3 })),
        sessionAffinity: word,
        trafficDistribution: fc.constantFrom('PreferClose', ''),
      },
      { requiredKeys: [] },
    ),
    status: noise,
  },
  { requiredKeys: ['metadata'] },
);

test('list of imports: any page -> the same facts as JSON.parse would give', () => {
  const readPage = createImportListReader();
  fc.assert(
    fc.property(fc.array(someImport, { maxLength: 5 }), fc.constantFrom(undefined, 2), (items, space) => {
      const metadata = { continue: 'next', resourceVersion: '17', remainingItemCount: 3 };
      const text = JSON.stringify({ kind: 'ServiceImportList', items, metadata }, null, space);
      const whole = JSON.parse(text) as List<ServiceImport>;
      const page = readPage(Buffer.from(text));
      expect(page.metadata).toMatchObject({ resourceVersion: '17', continue: 'next' });
      const facts = (each: ServiceImport) => [
        ...[each.metadata.name, each.metadata.namespace],
        ...[factsOfImport(each, 1), trafficOfImport(each)],
      ];
      const read: ServiceImport[] = [];
      page.each!((item) => read.push(item));
      expect(read.map(facts)).toEqual(whole.items.map(facts));
    }),
    { numRuns: 300 },
  );
});
