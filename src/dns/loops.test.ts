// Servers that point at each other or at themselves, over real sockets: told apart from slow ones and refused.

import packet from 'dns-packet';
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { createRealWorld } from '../base/real/world.ts';
import { type DnsOptions, type DnsServer, startDns } from './server.ts';
import { describeAnswer, encodeQuestion, extendedErrorOf, makeCatalog, syncAll } from './testing/ask.ts';
import { askUdpRaw } from './testing/edge/client.ts';

const running: DnsServer[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close()));
});

async function start(options: Partial<DnsOptions> = {}): Promise<DnsServer> {
  const catalog = makeCatalog();
  syncAll(catalog);
  const listen = { hosts: ['127.0.0.1'], port: 0 };
  const server = await startDns({ world: createRealWorld(), log: silentLog, catalog, listen, ...options });
  running.push(server);
  return server;
}

const addressOf = (server: DnsServer) => `127.0.0.1:${server.udpPort}`;
const zoneAt = (...servers: DnsServer[]) => [
  { zone: 'fed.svc.federation', nameservers: servers.map(addressOf), sendsSource: true },
];

async function ask(server: DnsServer, question: string): Promise<string> {
  const target = { host: '127.0.0.1', port: server.udpPort };
  const reply = packet.decode(await askUdpRaw(target, encodeQuestion(question, { edns: true })));
  return `${describeAnswer(reply)}; ${extendedErrorOf(reply)}`;
}

const federated = 'web.shop.fed.svc.federation A';
const refused = 'REFUSED; 0 loop: servers of fed.svc.federation pass this query round in a circle';

describe('dns loops', () => {
  test.each([0, 2])('%d workers: a stub zone that leads to the server itself -> refused', async (workers) => {
    const server = await start({ workers });
    server.setStubZones(zoneAt(server));
    await expect.poll(() => ask(server, federated)).toBe(refused);
  });

  test('two servers whose stub zones lead to each other -> refused by both', async () => {
    const [one, two] = [await start(), await start()];
    one.setStubZones(zoneAt(two));
    two.setStubZones(zoneAt(one));
    expect(await ask(one, federated)).toBe(refused);
    expect(await ask(two, federated)).toBe(refused);
  });

  test('two pairs that lead to each other -> refused, all of them asked at once too', async () => {
    const [a, b, c, d] = [await start(), await start(), await start(), await start()];
    for (const server of [a, b]) server.setStubZones(zoneAt(c, d));
    for (const server of [c, d]) server.setStubZones(zoneAt(a, b));
    const all = [a, b, c, d].map((server) => ask(server, federated));
    expect(new Set(await Promise.all(all))).toEqual(new Set([refused]));
  });
});
