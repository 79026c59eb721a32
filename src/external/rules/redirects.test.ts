import { expect, test } from 'vitest';
import { externalService } from '../testing/services.ts';
import { formatRange } from './overlaps.ts';
import { defaultOutboundPorts, redirectsOf } from './redirects.ts';
import { tablesOf } from './tables.ts';
import { redirectedRules } from './target.ts';

const place = { clusterset: 'default', cluster: '' };
const regular = 'destination: { type: Regular, endpoints: [{ address: a.b }] }';

function lines(...services: ReturnType<typeof externalService>[]): string[] {
  const rules = services.flatMap((object) => redirectedRules(object, place));
  const found = redirectsOf(tablesOf(rules), defaultOutboundPorts);
  return found.map(({ range, port, toPort }) => `${formatRange(range)}:${port} -> ${toPort}`);
}

test.each([
  [
    'a virtual IP by tcp',
    `{ match: [{ type: InternalVIP, value: m.ext, port: 27017 }], ${regular} }`,
    ['242.0.0.1:27017 -> 15002'],
  ],
  [
    'a virtual IP by http',
    `{ match: [{ type: InternalVIP, value: m.ext, port: 80, protocol: http }], ${regular} }`,
    ['242.0.0.1:80 -> 15001'],
  ],
  ['a range by tcp', '{ match: [{ type: CIDR, value: 10.1.1.0/24, port: 9000 }] }', ['10.1.1.0/24:9000 -> 15002']],
  [
    'a range by tls',
    '{ match: [{ type: CIDR, value: 10.1.1.0/24, port: 443, protocol: tls }] }',
    ['10.1.1.0/24:443 -> 15001'],
  ],
  [
    'a domain',
    '{ match: [{ type: Domain, value: a.com, port: 443, protocol: tls }] }',
    ['0.0.0.0/0:443 -> 15001', '::/0:443 -> 15001'],
  ],
  ['another mesh', '{ match: [{ type: IP, value: 10.0.0.1, port: 80 }] }', []],
  ['a broken one', '{ match: [{ type: IP, value: x, port: 80 }] }', []],
])('redirects: %s -> sent to the listener that fits', (what, spec, wanted) => {
  const labels: Record<string, string> = what === 'another mesh' ? { 'kuma.io/mesh': 'other' } : {};
  expect(lines(externalService(spec, { vips: { 'm.ext': '242.0.0.1' }, labels }))).toEqual(wanted);
});

test('redirects: a server-first virtual IP on a captured port -> keeps its listener; ranges of that port are looked at', () => {
  const db = externalService(`{ match: [{ type: InternalVIP, value: m.ext, port: 443 }], ${regular} }`, {
    name: 'db',
    vips: { 'm.ext': '242.0.0.1' },
  });
  const api = externalService('{ match: [{ type: Domain, value: a.com, port: 443, protocol: tls }] }', { name: 'api' });
  const net = externalService('{ match: [{ type: CIDR, value: 10.1.1.0/24, port: 443 }] }', { name: 'net' });
  expect(lines(db, api, net)).toEqual(['242.0.0.1:443 -> 15002', '0.0.0.0/0:443 -> 15001', '::/0:443 -> 15001']);
});
