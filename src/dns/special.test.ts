// Names that every resolver answers itself.

import { expect, test } from 'vitest';
import { Asker, makeCatalog } from './testing/ask.ts';

const asked: string[] = [];
const exchange = {
  ask: ({ server }: { server: { host: string } }) => {
    asked.push(server.host);
    return Promise.reject(new Error('there is no network here'));
  },
  close: () => {},
};
const stubZones = [{ zone: 'hidden.onion', nameservers: ['192.0.2.99'], sendsSource: false }];
const config = { forward: { nameservers: ['192.0.2.53'] } };

test.each([
  ['localhost A', '127.0.0.1'],
  ['a.b.localhost AAAA', '::1'],
  ['localhost MX', 'NODATA'],
  ['1.0.0.127.in-addr.arpa PTR', 'localhost'],
  [`1.${'0.'.repeat(31)}ip6.arpa PTR`, 'localhost'],
  ['x.onion A', 'NXDOMAIN'],
  ['onion A', 'NXDOMAIN'],
  ['host.invalid AAAA', 'NXDOMAIN'],
  ['name.alt A', 'NXDOMAIN'],
  ['_dns.resolver.arpa TXT', 'NODATA'],
  ['resolver.arpa A', 'NODATA'],
  ['x.resolver.arpa A', 'NXDOMAIN'],
])('special name: %s -> %s, answered here, before anything has been read too', async (question, expected) => {
  asked.length = 0;
  const asker = new Asker(makeCatalog(), { exchange, stubZones, config });
  const reply = await asker.askPacket(question);
  expect(await asker.ask(question)).toBe(expected);
  expect([reply.flag_aa, asked]).toEqual([true, []]);
  if (expected.startsWith('N')) expect(reply.authorities).toMatchObject([{ type: 'SOA', ttl: 86_400 }]);
});

test.each([
  ['mylocalhost A', '192.0.2.53'],
  ['host.test A', '192.0.2.53'],
  ['printer.home.arpa A', '192.0.2.53'],
  ['2.0.0.127.in-addr.arpa PTR', '192.0.2.53'],
  ['x.hidden.onion A', '192.0.2.99'],
])('special name: %s is none, or in a zone somebody was told about -> asked for at %s', async (question, server) => {
  asked.length = 0;
  await new Asker(makeCatalog(), { exchange, stubZones, config }).ask(question);
  expect(asked).toContain(server);
});
