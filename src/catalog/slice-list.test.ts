import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { List } from '../kube/client/client.ts';
import { parseWithoutNulls, withLists } from '../kube/client/foreign.ts';
import { type EndpointSlice, endpointSliceType } from '../kube/objects/endpoint-slice.ts';
import { createSliceListReader } from './slice-list.ts';

const some = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const word = fc.oneof(fc.stringMatching(/^[a-z0-9.-]{1,40}$/), fc.constantFrom('größe', 'with "quotes"', ''));
const noise = fc.dictionary(word, fc.oneof(word, fc.array(word, { maxLength: 3 }), fc.constant(null)), { maxKeys: 3 });

const someSlice = fc.record({
  metadata: fc.record({
    uid: word,
    managedFields: fc.array(noise, { maxLength: 2 }),
    name: word,
    namespace: word,
    resourceVersion: fc.nat().map(String),
    annotations: noise,
    labels: some(
      fc.record(
        {
          'multicluster.kubernetes.io/service-name': word,
          app: word,
          'multicluster.kubernetes.io/source-cluster': word,
          'kubernetes.io/service-name': word,
        },
        { requiredKeys: [] },
      ),
    ),
  }),
  ownerReferences: fc.array(noise, { maxLength: 2 }),
  addressType: fc.constantFrom('IPv4', 'IPv6', 'FQDN'),
  ports: fc.oneof(
    fc.constant(null),
    fc.array(
      fc.record(
        { name: word, port: fc.oneof(fc.nat(65_535), fc.constant(null)), protocol: word, appProtocol: word },
        { requiredKeys: [] },
      ),
      { maxLength: 3 },
    ),
  ),
  endpoints: fc.oneof(
    fc.constant(null),
    fc.array(
      fc.record(
        {
          addresses: fc.array(word, { maxLength: 3 }),
          hostname: word,
          zone: word,
          targetRef: noise,
          conditions: fc.record(
            { ready: fc.constantFrom(true, false, null), serving: fc.boolean() },
            { requiredKeys: [] },
          ),
        },
        { requiredKeys: ['addresses'] },
      ),
      { maxLength: 3 },
    ),
  ),
});

/** The fields that the catalog reads; null and absent are the same. */
function essence(slice: EndpointSlice) {
  const labels: Record<string, string | undefined> = slice.metadata.labels ?? {};
  return {
    name: slice.metadata.name,
    namespace: slice.metadata.namespace,
    resourceVersion: slice.metadata.resourceVersion,
    imported: labels['multicluster.kubernetes.io/service-name'],
    cluster: labels['multicluster.kubernetes.io/source-cluster'],
    service: labels['kubernetes.io/service-name'],
    addressType: slice.addressType,
    ports: (slice.ports ?? []).map(({ name, protocol, port }) => ({ name, protocol, port: port ?? undefined })),
    endpoints: (slice.endpoints ?? []).map(({ addresses, hostname, conditions }) => ({
      addresses,
      hostname,
      ready: conditions?.ready ?? undefined,
    })),
  };
}

describe('list of slices', () => {
  test('any page -> of each slice what JSON.parse would show of it, and the newest one whole', () => {
    const read = createSliceListReader();
    fc.assert(
      fc.property(fc.array(someSlice, { maxLength: 5 }), fc.constantFrom(undefined, 2), (items, space) => {
        const metadata = { continue: 'next', resourceVersion: '17', remainingItemCount: 3 };
        const text = JSON.stringify({ kind: 'EndpointSliceList', items, metadata }, null, space);
        const whole = JSON.parse(text) as List<EndpointSlice>;
        const page = read(Buffer.from(text));
        expect(page.metadata).toMatchObject({ resourceVersion: '17', continue: 'next' });
        expect(page.items.map(essence)).toEqual(whole.items.map(essence));
        const newest = Math.max(...items.map(({ metadata }) => Number(metadata.resourceVersion)));
        if (page.newest === undefined) expect(items).toEqual([]);
        else {
          // As a client reads it alone: null is absent, and lists are there.
          const alone = (parseWithoutNulls(text) as List<EndpointSlice>).items;
          expect(alone.map((item) => withLists(endpointSliceType, item))).toContainEqual(page.newest);
        }
        if (page.newest) expect(page.newest.metadata.resourceVersion).toBe(String(newest));
      }),
      { numRuns: 300 },
    );
  });

  test('text the scanner will not judge -> JSON.parse has the word', () => {
    const read = createSliceListReader();
    const item = '{"metadata":{"n\\u0061me":"a"},"endpoints":[]}';
    expect(read(Buffer.from(`{"metadata":{"resourceVersion":"9"},"items":[${item}]}`)).items).toEqual([
      { metadata: { name: 'a' }, endpoints: [] },
    ]);
    expect(read(Buffer.from('{"metadata":{"resourceVersion":"9"},"items":null}')).items).toEqual([]);
    expect(() => read(Buffer.from('{"metadata":{"resourceVersion":"9"},"items":['))).toThrow(SyntaxError);
    expect(() => read(Buffer.from('<html>'))).toThrow(SyntaxError);
  });
});
