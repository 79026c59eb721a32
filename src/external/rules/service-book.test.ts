import { expect, test } from 'vitest';
import { builtinPlugins } from '../plugins/builtin.ts';
import { externalService } from '../testing/services.ts';
import { type BookGround, ServiceBook } from './service-book.ts';

const ground: BookGround = {
  ...{ generators: [], zones: ['cluster.local'], othersAt: () => [], pools: [] },
  ...{ place: { clusterset: 'prod', cluster: 'east' }, plugins: builtinPlugins, secrets: () => undefined },
};
const now = { nowMs: 0, plane: { kind: 'unknown' } } as const;
const nobody = { ips: new Map(), exhausted: new Map() };

function service(name: string, { cidr, hostname = `${name}.ext` }: { cidr: string; hostname?: string }) {
  const spec = `{ match: [{ type: InternalVIP, value: ${hostname}, port: 80, protocol: http }, { type: CIDR, value: ${cidr}, port: 9000 }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }] } }`;
  return externalService(spec, { name });
}

function filled(count: number): ServiceBook {
  const book = new ServiceBook(ground);
  for (let i = 0; i < count; i += 1) book.set(`ns/s${i}`, service(`s${i}`, { cidr: `10.${i >> 8}.${i % 256}.0/24` }));
  return book;
}

test('service book: one service changes among many -> those that share a name or a range with it, no others', () => {
  const book = filled(500);
  const changed = service('s7', { cidr: '10.1.0.0/25', hostname: 's9.ext' });
  const { services, hostnames } = book.set('ns/s7', changed);
  expect([...services].sort()).toEqual(['ns/s256', 'ns/s9']);
  expect([...hostnames].sort()).toEqual(['s7.ext', 's9.ext']);
  expect(book.statusOf('ns/s256', nobody, now)?.overlaps).toEqual([
    's256 and s7 have overlapping IPs 10.1.0.0/25, which can disrupt your traffic; s7 wins on port 9000: it has the longer prefix',
  ]);
  const { services: left } = book.set('ns/s7', undefined);
  expect([...left].sort()).toEqual(['ns/s256', 'ns/s9']);
  expect(book.statusOf('ns/s256', nobody, now)?.overlaps).toEqual([]);
  expect(book.statusOf('ns/s7', nobody, now)).toBeUndefined();
});

test('service book: two services with the same domain -> the condition of both names the winner, until one goes', () => {
  const book = new ServiceBook(ground);
  const named = (name: string) =>
    externalService('{ match: [{ type: Domain, value: api.example.com, port: 443, protocol: tls }] }', { name });
  book.set('ns/a', named('a'));
  expect([...book.set('ns/b', named('b')).services]).toEqual(['ns/a']);
  const overlapping = (key: string) =>
    book.statusOf(key, nobody, now)?.conditions.find(({ type }) => type === 'Overlapping');
  for (const key of ['ns/a', 'ns/b'])
    expect(overlapping(key)).toMatchObject({ status: 'True', message: expect.stringContaining('a wins on port 443') });
  expect([...book.set('ns/a', undefined).services]).toEqual(['ns/b']);
  expect(overlapping('ns/b')).toMatchObject({ status: 'False' });
});

test('service book: only the status of an object changed -> nothing is touched', () => {
  const book = filled(10);
  const same = { ...service('s7', { cidr: '10.0.7.0/24' }), status: { conditions: [] } };
  expect(book.set('ns/s7', same)).toEqual({ services: new Set(), hostnames: new Set() });
});

test('service book: a copy turns into an object of its own -> the old id is gone', () => {
  const book = new ServiceBook(ground);
  const copy = externalService('{ match: [{ type: CIDR, value: 10.0.0.0/8, port: 80 }] }', {
    name: 'a',
    origin: 'broker',
  });
  book.set('ns/a.broker', copy);
  const { metadata } = copy;
  book.set('ns/a.broker', { ...copy, metadata: { ...metadata, labels: {} } });
  book.set('ns/b', externalService('{ match: [{ type: IP, value: 10.0.0.1, port: 80 }] }', { name: 'b' }));
  // A dot in a name of its own is refused, so nothing overlaps.
  expect(book.statusOf('ns/b', nobody, now)?.overlaps).toEqual([]);
});

test('service book: a Secret comes -> those that name it', () => {
  let data: string | undefined;
  const book = new ServiceBook({ ...ground, secrets: () => data });
  const tls =
    '{ match: [{ type: IP, value: 10.0.0.1, port: 80 }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }], tls: { caCert: { secret: pki } } } }';
  book.set('ns/a', externalService(tls, { name: 'a' }));
  book.set('ns/b', service('b', { cidr: '10.0.0.0/8' }));
  expect([...book.naming('pki')]).toEqual(['ns/a']);
  expect(book.statusOf('ns/a', nobody, now)?.conditions[1]).toMatchObject({ reason: 'TLSNotReady' });
  book.set('ns/a', undefined);
  expect([...book.naming('pki')]).toEqual([]);
});
