import { expect, test } from 'vitest';
import { importOf, sliceOf } from '../../test/support/imports.ts';
import type { EndpointSlice } from '../kube/objects/endpoint-slice.ts';
import { factsOfImport, factsOfSlice } from './facts.ts';

test('facts: objects with much besides -> only what the choice needs is kept', () => {
  const much = { annotations: { note: 'x'.repeat(10_000) }, managedFields: [{ manager: 'x' }] };
  const slice = sliceOf({
    service: 'a',
    cluster: 'east',
    addresses: ['10.1.0.1'],
    ports: [{ name: 'http', port: 8080 }],
  }) as unknown as EndpointSlice;
  const fat = { ...slice, metadata: { ...slice.metadata, ...much } };
  const [endpoint] = fat.endpoints!;
  const more = { nodeName: 'n', hostname: 'h', targetRef: { name: 'pod' }, deprecatedTopology: { a: 'b' } };
  expect(factsOfSlice({ ...fat, endpoints: [{ ...endpoint!, ...more }] } as typeof slice)).toEqual({
    service: 'shop/a',
    cluster: 'east',
    family: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: [{ address: '10.1.0.1' }],
  });
  const object = importOf('a', { ips: ['243.0.0.1'], ports: [{ name: 'http', port: 80 }] });
  const facts = factsOfImport({ ...object, metadata: { ...object.metadata, ...much } } as never);
  expect(JSON.stringify(facts).length).toBeLessThan(400);
});
