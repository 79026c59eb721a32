import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { List } from '../../kube/client/client.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
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
          'portolan.dev/virtual-addresses': word,
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
    virtual: labels['portolan.dev/virtual-addresses'],
    addressType: slice.addressType,
    ports: (slice.ports ?? []).map(({ name, protocol, port }) => ({ name, protocol, port: port ?? undefined })),
    endpoints: (slice.endpoints ?? []).map(({ addresses, hostname, conditions }) => ({
      addresses,
      hostname,
      ready: conditions?.ready ?? undefined,
    })),
  };
}

function readWhole(read: ReturnType<typeof createSliceListReader>, text: string) {
  const items: EndpointSlice[] = [];
  const page = read(Buffer.from(text));
  page.each?.((item) => items.push(item));
  return { metadata: page.metadata, items: page.each ? items : page.items };
}

describe('list of slices', () => {
  test('any page -> of each slice what JSON.parse would show of it', () => {
    const read = createSliceListReader();
    fc.assert(
      fc.property(
        fc.array(someSlice, { maxLength: 5 }),
        fc.constantFrom(undefined, 2),
        fc.boolean(),
        (items, space, isEarly) => {
          const metadata = { continue: 'next', resourceVersion: '17', remainingItemCount: 3 };
          const kind = 'EndpointSliceList';
          const list = isEarly ? { kind, metadata, items, behind: [{}] } : { kind, items, metadata };
          const text = JSON.stringify(list, null, space);
          const whole = JSON.parse(text) as List<EndpointSlice>;
          const page = readWhole(read, text);
          expect(page.metadata).toMatchObject({ resourceVersion: '17', continue: 'next' });
          expect(page.items.map(essence)).toEqual(whole.items.map(essence));
        },
      ),
      { numRuns: 300 },
    );
  });

  test('text the scanner will not judge -> JSON.parse has the word', () => {
    const read = createSliceListReader();
    const start = '{"metadata":{"resourceVersion":"9"},"items":';
    const plain = '{"metadata":{"name":"b","resourceVersion":"8"},"endpoints":null}';
    const escaped = '{"metadata":{"n\\u0061me":"a","resourceVersion":"7"},"endpoints":[]}';
    const { items } = readWhole(read, `${start}[${plain},${escaped}]}`);
    // Those before it are visited twice.
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['b', 'b', 'a']);
    expect(readWhole(read, `${start}null}`).items).toEqual([]);
    expect(readWhole(read, '{"it\\u0065ms":[{"metadata":{"name":"c"}}]}').items).toHaveLength(1);
  });

  test('no JSON -> an error that says so, wherever it ends', () => {
    const read = createSliceListReader();
    const text = '{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]}';
    for (let end = 0; end < text.length; end++)
      expect(() => readWhole(read, text.slice(0, end))).toThrow('list endpointslices: the answer is not JSON');
    expect(() => readWhole(read, `${text}x`)).toThrow(/not JSON/);
    expect(() => readWhole(read, '<html>')).toThrow(/not JSON/);
  });

  test('a visitor that fails -> its error, and no second try', () => {
    const read = createSliceListReader();
    const visited: string[] = [];
    const { each } = read(Buffer.from('{"metadata":{},"items":[{"metadata":{"name":"a"}}]}'));
    const visit = ({ metadata }: EndpointSlice) => {
      visited.push(metadata.name);
      throw new Error('full');
    };
    expect(() => each!(visit)).toThrow('full');
    expect(visited).toEqual(['a']);
  });
});
