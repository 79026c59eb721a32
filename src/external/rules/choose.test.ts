// The meaning of the rules, as tables a person can read.

import { describe, expect, test } from 'vitest';
import { parseIp } from '../../base/net/ip.ts';
import { externalService } from '../testing/services.ts';
import { type Connection, choose, rank } from './choose.ts';
import { ownerId, rulesOf } from './rule.ts';

const everything = [
  externalService('{ match: [{ type: Domain, value: Api.example.com, port: 443, protocol: tls }] }', { name: 'api' }),
  externalService('{ match: [{ type: Domain, value: "*.example.com", port: 443, protocol: tls }] }', { name: 'wild' }),
  externalService('{ match: [{ type: Domain, value: "*.deep.example.com", port: 443, protocol: tls }] }', {
    name: 'deep',
  }),
  externalService('{ match: [{ type: IP, value: 10.1.1.7, port: 443, protocol: tls }] }', { name: 'address' }),
  externalService('{ match: [{ type: CIDR, value: 10.1.1.0/24, port: 443, protocol: tcp }] }', { name: 'near' }),
  externalService('{ match: [{ type: CIDR, value: 10.1.0.0/16, port: 443, protocol: tls }] }', { name: 'far' }),
  externalService(
    '{ match: [{ type: Domain, value: httpbin.com, port: 80, protocol: http }, { type: Domain, value: grpc.io, port: 80, protocol: grpc }] }',
    { name: 'web' },
  ),
  externalService('{ match: [{ type: CIDR, value: 10.1.1.0/24, port: 80, protocol: http }] }', { name: 'net' }),
  externalService('{ match: [{ type: CIDR, value: 10.1.1.0/24, port: 80, protocol: http }] }', {
    name: 'older',
    created: '2025-01-01T00:00:00Z',
  }),
  externalService(
    '{ match: [{ type: InternalVIP, value: mongo.ext, port: 80, protocol: http }], destination: { type: Regular } }',
    {
      name: 'mongo',
      vips: { 'mongo.ext': '242.0.0.1' },
    },
  ),
];
const rules = everything.flatMap(rulesOf);

function ask(text: string): string {
  const [to = '', ...words] = text.split(' ');
  const colon = to.lastIndexOf(':');
  const of = (name: string) => words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
  const application = words.includes('http') ? 'http1' : words.includes('http2') ? 'http2' : undefined;
  const sni = of('sni');
  const connection: Connection = {
    address: parseIp(to.slice(0, colon).replaceAll(/[[\]]/g, ''))!,
    port: Number(to.slice(colon + 1)),
    transport: words.includes('tls')
      ? { kind: 'tls', ...(sni === undefined ? {} : { sni }) }
      : { kind: 'plain', ...(application === undefined ? {} : { application }) },
  };
  const host = of('host');
  const chosen = choose(rules, connection, host === undefined ? undefined : { host });
  return chosen === undefined ? 'as without' : ownerId(chosen.resource);
}

describe('choose', () => {
  test.each([
    ['9.9.9.9:443 tls sni=api.example.com', 'api'],
    ['10.1.1.7:443 tls sni=API.example.com', 'api'],
    ['9.9.9.9:443 tls sni=x.example.com', 'wild'],
    ['9.9.9.9:443 tls sni=x.y.example.com', 'wild'],
    ['9.9.9.9:443 tls sni=x.deep.example.com', 'deep'],
    ['9.9.9.9:443 tls sni=deep.example.com', 'wild'],
    ['9.9.9.9:443 tls sni=example.com', 'as without'],
    ['10.1.1.7:443 tls sni=other.org', 'address'],
    ['10.1.1.7:443 tls', 'address'],
    ['10.1.1.8:443 tls', 'near'],
    ['10.1.1.7:443', 'near'],
    ['10.1.2.8:443 tls', 'far'],
    ['10.1.2.8:443', 'as without'],
    ['10.1.1.7:444 tls', 'as without'],
    ['9.9.9.9:80 http host=httpbin.com', 'web'],
    ['9.9.9.9:80 http host=HTTPBIN.com:80', 'web'],
    ['9.9.9.9:80 http2 host=httpbin.com', 'as without'],
    ['9.9.9.9:80 http2 host=grpc.io', 'web'],
    ['10.1.1.1:80 http host=httpbin.com', 'web'],
    ['10.1.1.1:80 http host=other.org', 'older'],
    ['10.1.1.1:80 http', 'older'],
    ['10.1.1.1:80', 'as without'],
    ['242.0.0.1:80 http host=httpbin.com', 'mongo'],
    ['242.0.0.1:80 http host=mongo.ext', 'mongo'],
    ['242.0.0.1:80', 'as without'],
    ['9.9.9.9:80 http host=mongo.ext', 'as without'],
    ['[fd00::1]:443 tls sni=api.example.com', 'api'],
  ])('%s -> %s [004-05, 004-09, 004-11]', (connection, rule) => expect(ask(connection)).toBe(rule));

  test('between equals -> the older, then by name, then the one of the broker; in any order', () => {
    const net = (name: string, more: object = {}) =>
      externalService('{ match: [{ type: CIDR, value: 10.7.0.0/16, port: 22 }] }', { name, ...more });
    const connection: Connection = { address: parseIp('10.7.1.1')!, port: 22, transport: { kind: 'plain' } };
    const order = [
      net('z', { created: '2025-01-01T00:00:00Z' }),
      net('a', { origin: 'broker' }),
      net('a'),
      net('b', { origin: 'broker' }),
      net('c'),
    ];
    const ranked = (services: typeof order) =>
      rank(services.flatMap(rulesOf), connection).map(({ resource }) => ownerId(resource));
    const wanted = ['z', 'broker/a', 'a', 'broker/b', 'c'];
    expect(ranked(order)).toEqual(wanted);
    expect(ranked(order.toReversed())).toEqual(wanted);
  });

  test('a captured port -> everything on it, below any other rule [004-13]', () => {
    const captured = externalService('{ match: [{ type: Domain, value: a.com, port: 25 }] }');
    const [v4, v6] = ['9.9.9.9', 'fd00::1'].map((text) => parseIp(text)!);
    for (const address of [v4!, v6!])
      expect(choose(rulesOf(captured), { address, port: 25, transport: { kind: 'plain' } })).toBeDefined();
    const beside = '{ match: [{ type: Domain, value: a.com, port: 25 }, { type: IP, value: 10.0.0.1, port: 25 }] }';
    expect(rulesOf(externalService(beside))).toHaveLength(1);
  });
});
