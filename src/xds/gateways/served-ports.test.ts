import { expect, test } from 'vitest';
import type { Endpoint, EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import { servedPortsOf } from './served-ports.ts';

const exported = {
  ...{ namespace: 'shop', service: 'db', addresses: [], host: 'db.shop.svc.clusterset.local', exportTo: undefined },
};
const slice = (
  endpoints: Endpoint[],
  ports: EndpointSlice['ports'] = [{ name: 'sql', port: 5433 }],
): EndpointSlice => ({
  ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: { name: 'db-1', namespace: 'shop' } },
  ...{ addressType: 'IPv4', endpoints, ports },
});
const served = (slices: EndpointSlice[], isHeadless = true) =>
  servedPortsOf({ exported, isHeadless, ports: [{ port: 5432, slicePort: 'sql' }], slices, cluster: 'east' }).map(
    ({ exported: { host, port }, endpoints }) => [
      `${host}:${port}`,
      endpoints.map((each) => `${each.address}:${each.port}`).join(),
    ],
  );
const db0 = { addresses: ['10.1.0.1'], hostname: 'db-0' };
const db1 = { addresses: ['10.1.0.2'], hostname: 'db-1', conditions: { ready: false } };

test('served ports: a service with an address -> each port, with all of its ready endpoints', () => {
  expect(served([slice([db0, db1])], false)).toEqual([['db.shop.svc.clusterset.local:5432', '10.1.0.1:5433']]);
});

test('served ports: a headless service -> each endpoint by itself at its own port; one that is not ready has a name and leads nowhere', () => {
  const wanted = [
    ['db-0.east.db.shop.svc.clusterset.local:5433', '10.1.0.1:5433'],
    ['db-1.east.db.shop.svc.clusterset.local:5433', ''],
  ];
  expect(served([slice([db1, db0])])).toEqual(wanted);
  expect(served([slice([db1]), slice([db0])])).toEqual(wanted);
});

test('served ports: ports that are not exposed, UDP, host names, foreign nonsense -> not served', () => {
  const ports = [{ name: 'admin', port: 9000 }, { name: 'sql', port: 5433, protocol: 'UDP' as const }, { name: 'sql' }];
  expect(served([slice([db0], ports)])).toEqual([]);
  expect(served([{ ...slice([db0]), addressType: 'FQDN' }])).toEqual([]);
  const nonsense = [
    null,
    {},
    { addresses: null },
    { addresses: ['nowhere'], hostname: 'db-2' },
  ] as unknown as Endpoint[];
  expect(served([slice(nonsense)])).toEqual([['db-2.east.db.shop.svc.clusterset.local:5433', '']]);
  for (const field of ['endpoints', 'ports']) expect(served([{ ...slice([db0]), [field]: null }])).toEqual([]);
});

test('served ports: UDP beside TCP of the same number -> each with its own endpoints, UDP by a name of its own', () => {
  const both = slice(
    [db0],
    [
      { name: 'sql', port: 5433 },
      { name: 'dns', port: 5353, protocol: 'UDP' },
    ],
  );
  const ports = [
    { port: 53, slicePort: 'sql' },
    { port: 53, slicePort: 'dns', isUdp: true },
  ];
  const of = (isHeadless: boolean) =>
    servedPortsOf({ exported, isHeadless, ports, slices: [both], cluster: 'east' }).map(
      ({ exported: { host, port }, endpoints }) => `${host}:${port} ${endpoints.map((each) => each.port).join()}`,
    );
  expect(of(false)).toEqual(['db.shop.svc.clusterset.local:53 5433', 'udp.db.shop.svc.clusterset.local:53 5353']);
  expect(of(true)).toEqual(['db-0.east.db.shop.svc.clusterset.local:5433 5433']);
});
