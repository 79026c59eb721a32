import { expect, test } from 'vitest';
import { builtinPlugins } from '../plugins/builtin.ts';
import { externalService } from '../testing/services.ts';
import { type IndexContext, ServiceIndex } from './service-index.ts';

const context: IndexContext = {
  ...{ generators: [], zones: ['cluster.local'], othersAt: () => [], pools: [] },
  ...{ place: { clusterset: 'prod', cluster: 'east' }, plugins: builtinPlugins, secrets: () => undefined },
};
const now = { nowMs: 0, plane: { kind: 'unknown' } } as const;
const nobody = { ips: new Map(), exhausted: new Map() };

function service(name: string, { cidr, hostname = `${name}.ext` }: { cidr: string; hostname?: string }) {
  const spec = `{ match: [{ type: InternalVIP, value: ${hostname}, port: 80, protocol: http }, { type: CIDR, value: ${cidr}, port: 9000 }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }] } }`;
  return externalService(spec, { name });
}

function filled(count: number): ServiceIndex {
  const index = new ServiceIndex(context);
  for (let i = 0; i < count; i += 1) index.set(`ns/s${i}`, service(`s${i}`, { cidr: `10.${i >> 8}.${i % 256}.0/24` }));
  return index;
}

test('service index: one service changes among many -> those that share a name or a range with it, no others', () => {
  const index = filled(500);
  const changed = service('s7', { cidr: '10.1.0.0/25', hostname: 's9.ext' });
  const { services, hostnames } = index.set('ns/s7', changed);
  expect([...services].sort()).toEqual(['ns/s256', 'ns/s9']);
  expect([...hostnames].sort()).toEqual(['s7.ext', 's9.ext']);
  expect(index.statusOf('ns/s256', nobody, now)?.overlaps).toEqual([
    's256 and s7 have overlapping IPs 10.1.0.0/25, which can disrupt your traffic; s7 wins on port 9000: it has the longer prefix',
  ]);
  const { services: left } = index.set('ns/s7', undefined);
  expect([...left].sort()).toEqual(['ns/s256', 'ns/s9']);
  expect(index.statusOf('ns/s256', nobody, now)?.overlaps).toEqual([]);
  expect(index.statusOf('ns/s7', nobody, now)).toBeUndefined();
});

test('service index: two services with the same domain -> the condition of both names the winner, until one goes', () => {
  const index = new ServiceIndex(context);
  const named = (name: string) =>
    externalService('{ match: [{ type: Domain, value: api.example.com, port: 443, protocol: tls }] }', { name });
  index.set('ns/a', named('a'));
  expect([...index.set('ns/b', named('b')).services]).toEqual(['ns/a']);
  const overlapping = (key: string) =>
    index.statusOf(key, nobody, now)?.conditions.find(({ type }) => type === 'Overlapping');
  for (const key of ['ns/a', 'ns/b'])
    expect(overlapping(key)).toMatchObject({ status: 'True', message: expect.stringContaining('a wins on port 443') });
  expect([...index.set('ns/a', undefined).services]).toEqual(['ns/b']);
  expect(overlapping('ns/b')).toMatchObject({ status: 'False' });
});

test('service index: only the status of an object changed -> nothing is touched', () => {
  const index = filled(10);
  const same = { ...service('s7', { cidr: '10.0.7.0/24' }), status: { conditions: [] } };
  expect(index.set('ns/s7', same)).toEqual({ services: new Set(), hostnames: new Set() });
});

test('service index: a copy turns into an object of its own -> the old id is gone', () => {
  const index = new ServiceIndex(context);
  const copy = externalService('{ match: [{ type: CIDR, value: 10.0.0.0/8, port: 80 }] }', {
    name: 'a',
    origin: 'broker',
  });
  index.set('ns/a.broker', copy);
  const { metadata } = copy;
  index.set('ns/a.broker', { ...copy, metadata: { ...metadata, labels: {} } });
  index.set('ns/b', externalService('{ match: [{ type: IP, value: 10.0.0.1, port: 80 }] }', { name: 'b' }));
  // A dot in a name of its own is refused, so nothing overlaps.
  expect(index.statusOf('ns/b', nobody, now)?.overlaps).toEqual([]);
});

test('service index: a Secret comes -> those that name it', () => {
  let data: string | undefined;
  const index = new ServiceIndex({ ...context, secrets: () => data });
  const tls =
    '{ match: [{ type: IP, value: 10.0.0.1, port: 80 }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }], tls: { caCert: { secret: pki } } } }';
  index.set('ns/a', externalService(tls, { name: 'a' }));
  index.set('ns/b', service('b', { cidr: '10.0.0.0/8' }));
  expect([...index.naming('pki')]).toEqual(['ns/a']);
  expect(index.statusOf('ns/a', nobody, now)?.conditions[1]).toMatchObject({ reason: 'TLSNotReady' });
  index.set('ns/a', undefined);
  expect([...index.naming('pki')]).toEqual([]);
});
