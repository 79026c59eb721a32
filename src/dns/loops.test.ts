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

  const passedBack = 'REFUSED; 0 loop: the servers that this query is passed on to pass it back here';

  test.each([0, 2])('%d workers: a server that forwards to itself -> refused', async (workers) => {
    const port = await freePort();
    const listen = { hosts: ['127.0.0.1'], port };
    const server = await start({ workers, listen, forward: { nameservers: [`127.0.0.1:${port}`] } });
    expect(await ask(server, 'www.example.com A')).toBe(passedBack);
    expect(await ask(server, 'other.example.com A')).toBe(passedBack);
  });

  test('two servers that forward to each other -> refused by both', async () => {
    const ports = [await freePort(), await freePort()] as const;
    const at = (own: number, other: number) =>
      start({ listen: { hosts: ['127.0.0.1'], port: own }, forward: { nameservers: [`127.0.0.1:${other}`] } });
    const one = await at(ports[0], ports[1]);
    const two = await at(ports[1], ports[0]);
    expect(await ask(one, 'www.example.com A')).toBe(passedBack);
    expect(await ask(two, 'other.example.com A')).toBe(passedBack);
  });

  test('a zone that two servers pass on to each other without word of who asks -> refused', async () => {
    const [one, two] = [await start(), await start()];
    const passing = (server: DnsServer) => [
      { zone: 'corp.example', nameservers: [addressOf(server)], sendsSource: false },
    ];
    one.setStubZones(passing(two));
    two.setStubZones(passing(one));
    expect(await ask(one, 'www.corp.example A')).toBe(passedBack);
  });
});

async function freePort(): Promise<number> {
  const server = await start();
  const { udpPort } = server;
  running.splice(running.indexOf(server), 1);
  await server.close();
  return udpPort;
}
