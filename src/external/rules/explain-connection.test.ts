import { expect, test } from 'vitest';
import { parseIp } from '../../base/net/ip.ts';
import { formatConnection } from '../../cli/external/explain-connection.ts';
import { builtinPlugins } from '../plugins/builtin.ts';
import { createAuthority } from '../testing/pem.ts';
import { externalService } from '../testing/services.ts';
import type { Connection, Request } from './choose.ts';
import { explainConnection } from './explain-connection.ts';

const services = [
  externalService('{ match: [{ type: Domain, value: api.example.com, port: 443, protocol: tls }] }', { name: 'api' }),
  externalService(
    '{ match: [{ type: CIDR, value: 10.1.1.0/24, port: 443, protocol: tls }], destination: { type: Regular, endpoints: [{ address: 10.0.0.9, port: 8443 }] } }',
    { name: 'net' },
  ),
  externalService('{ match: [{ type: CIDR, value: 10.1.1.0/24, port: 443, protocol: tls }] }', {
    name: 'late',
    created: '2027-01-01T00:00:00Z',
  }),
  externalService(
    '{ match: [{ type: InternalVIP, value: db.ext, port: 27017 }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }] } }',
    { name: 'db', vips: { 'db.ext': '242.0.0.1' } },
  ),
  externalService(
    '{ match: [{ type: IP, value: 10.9.9.9, port: 443, protocol: http }], destination: { type: Extension, extension: { type: Unheard } } }',
    { name: 'odd' },
  ),
];
const input = {
  services,
  place: { clusterset: 'default', cluster: '' },
  plugins: builtinPlugins,
  secrets: () => undefined,
};

function text(to: string, transport: Connection['transport'], request?: Request): string {
  const [address = '', port] = to.split(':');
  const connection = { address: parseIp(address)!, port: Number(port), transport };
  return formatConnection({ to }, explainConnection(input, connection, request)).join('\n');
}

test('explain connection: by SNI -> the rule, its destination, what it hides and why', () => {
  expect(text('10.1.1.7:443', { kind: 'tls', sni: 'api.example.com' })).toBe(
    `connection  10.1.1.7:443
rule        api spec.match[0]: name api.example.com port 443 tls
goes to     the original destination (Passthrough)
cluster     api_443
listener    the one that looks at the first bytes

HIDDEN  MATCH                           WHY
net     range 10.1.1.0/24 port 443 tls  an exact name counts more than a prefix of 24 bits
late    range 10.1.1.0/24 port 443 tls  an exact name counts more than a prefix of 24 bits
note: a Domain match captures port 443 for all destinations; what DNS answers for that name stays as it is
note: odd is not ready, what it matches is closed: extension.type: there is no plugin Unheard; there are Lambda`,
  );
});

test('explain connection: between equals -> the older, and it is said', () => {
  expect(text('10.1.1.7:443', { kind: 'tls' })).toMatch(
    /rule {8}net[\s\S]*goes to {5}10\.0\.0\.9:8443[\s\S]*late .*net is older/,
  );
});

const created = { created: '2026-01-01T00:00:00Z' };

function explain(object: (typeof services)[number][], to: string, transport: Connection['transport']): string {
  const [address = '', port] = to.split(':');
  const connection = { address: parseIp(address)!, port: Number(port), transport };
  return formatConnection({ to }, explainConnection({ ...input, services: object }, connection)).join('\n');
}

test('explain connection: equal age, and two matches of one resource -> by name, and by place', () => {
  const net = (name: string) =>
    externalService('{ match: [{ type: CIDR, value: 10.5.0.0/16, port: 22 }] }', { name, ...created });
  const twice = externalService(
    '{ match: [{ type: CIDR, value: 10.5.0.0/16, port: 22, protocol: tcp }, { type: CIDR, value: 10.5.0.0/16, port: 22, protocol: tls }] }',
    { name: 'twice', ...created },
  );
  const found = explain([net('b'), twice, net('a')], '10.5.1.1:22', { kind: 'tls' });
  expect(found).toMatch(/^rule {8}a spec\.match\[0\]/m);
  expect(found).toMatch(/^b .*as old as a, which comes first by name$/m);
  expect(explain([twice], '10.5.1.1:22', { kind: 'tls' })).toMatch(
    /^twice .*an earlier match of the same resource decides$/m,
  );
});

test('explain connection: requests without a Host, where Host decides -> which names, and how to ask', () => {
  const web = externalService('{ match: [{ type: Domain, value: a.com, port: 80, protocol: http }] }', { name: 'web' });
  const found = explain([web], '10.5.1.1:80', { kind: 'plain', application: 'http1' });
  expect(found).toContain('note: requests may go elsewhere by Host: a.com; add --host');
});

test.each([
  ['verification: { skip: true }', 'over TLS, verified not at all (skip, no CA)'],
  ['CA, verification: { skip: true }', 'over TLS, verified by CA alone (skip)'],
  ['CA', "over TLS, verified by CA and the endpoint's own name"],
  ['CA, verification: { subjectAltNames: [a.b] }', 'over TLS, verified by CA and a.b'],
])('explain connection: tls { %s } -> %s', (tls, words) => {
  const ca = `caCert: { inlineString: ${JSON.stringify(createAuthority().certificate)} }`;
  const spec = `{ match: [{ type: IP, value: 10.5.1.1, port: 80 }], destination: { type: Regular, endpoints: [{ address: 10.0.0.9 }], tls: { ${tls.replace('CA', ca)} } } }`;
  expect(explain([externalService(spec)], '10.5.1.1:80', { kind: 'plain' })).toContain(`10.0.0.9:80 ${words}`);
});

test('explain connection: a service that is not ready, one that does not count -> closed, and passed over', () => {
  const ready = text('10.9.9.9:443', { kind: 'plain', application: 'http1' });
  expect(ready).toContain('nowhere: the connection is closed, because the service is not ready');
  const other = externalService('{ match: [{ type: IP, value: 8.8.8.8, port: 53 }] }', {
    name: 'other',
    labels: { 'kuma.io/mesh': 'another' },
  });
  const connection = { address: parseIp('8.8.8.8')!, port: 53, transport: { kind: 'plain' as const } };
  const { rule, notes } = explainConnection({ ...input, services: [other] }, connection);
  expect([rule, notes.join()]).toEqual([undefined, expect.stringContaining('other does not count: ')]);
});

test('explain connection: a virtual IP by tcp -> the listener that does not look inside', () => {
  expect(text('242.0.0.1:27017', { kind: 'plain' })).toMatch(
    /db spec.match\[0\]: virtual IP[\s\S]*10\.0\.0\.1:27017[\s\S]*does not look inside/,
  );
});

test('explain connection: no rule -> as without, whether the port is captured or not', () => {
  expect(text('8.8.8.8:443', { kind: 'plain' })).toContain('the port is captured, but no rule matches');
  expect(text('8.8.8.8:53', { kind: 'plain' })).toContain('none, the kernel does not redirect it');
});
