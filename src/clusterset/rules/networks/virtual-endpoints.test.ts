import { expect, test } from 'vitest';
import { carriedLabels, endpointLabel, virtualEndpointsMax } from './virtual-endpoints.ts';

test('virtual endpoints: a label is the hostname; without one, or with one that is no name, it hides the address', () => {
  const label = (hostname: unknown, address: unknown = '10.1.0.1') =>
    endpointLabel({ hostname: hostname as string, addresses: [address as string] });
  expect(label('db-0')).toBe('db-0');
  const hidden = label(undefined);
  expect(hidden).toMatch(/^ep-[0-9a-f]{10}$/);
  expect(label(undefined, '10.1.0.2')).not.toBe(hidden);
  expect(label(undefined, '0:0:0:0:0:0:0:1')).toBe(label(undefined, '::1'));
  for (const hostile of ['', 'DB', 'a.b', '%DOWNSTREAM_LOCAL_ADDRESS%', 'x'.repeat(64), 7, null, {}])
    expect(label(hostile)).toBe(hidden);
  expect(label('db-0', null)).toBeUndefined();
  expect(endpointLabel({ hostname: 'db-0', addresses: null as unknown as string[] })).toBeUndefined();
});

test('virtual endpoints: more than are carried -> the first by ordinal, whatever their order', () => {
  const labels = Array.from({ length: virtualEndpointsMax + 20 }, (_, index) => `db-${index}`);
  const carried = carriedLabels(labels.toReversed());
  expect(carried).toEqual(labels.slice(0, virtualEndpointsMax));
  expect(carriedLabels(['b', 'a', 'b'])).toEqual(['a', 'b']);
});
