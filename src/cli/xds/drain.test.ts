import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createRealWorld } from '../../base/real/world.ts';
import { drainedText, drainGateway, drainMs } from './drain.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** The admin endpoint of an Envoy with so many streams, one fewer at each look. */
async function envoy(open: number, status = 200) {
  const asked: string[] = [];
  let left = open;
  const server = createServer((request, response) => {
    const isLook = request.url!.startsWith('/stats');
    if (!isLook) asked.push(`${request.method} ${request.url}`);
    response.statusCode = status;
    response.end(isLook ? `http.gateway.downstream_rq_active: ${left}\n` : 'OK\n');
    if (isLook && left > 0) left -= 1;
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { asked, admin: { host: '127.0.0.1', port: (server.address() as AddressInfo).port } };
}

describe('xds drain', () => {
  const world = createRealWorld();

  test('an address of its own -> it fails its checks, then drains, and returns when nothing is open', async () => {
    const { asked, admin } = await envoy(2);
    expect(await drainGateway(world, { admin, forMs: 12_000, isAddressShared: false })).toBe(0);
    expect(asked).toEqual(['POST /healthcheck/fail', 'POST /drain_listeners?graceful&inboundonly']);
  });

  test('a shared address -> its checks go on, because they are those of the others too', async () => {
    const { asked, admin } = await envoy(0);
    expect(await drainGateway(world, { admin, forMs: 100, isAddressShared: true })).toBe(0);
    expect(asked).toEqual(['POST /drain_listeners?graceful&inboundonly']);
  });

  test('connections that do not end -> counted when the time is over; no Envoy, or one that refuses -> an error', async () => {
    const { admin } = await envoy(1000);
    expect(await drainGateway(world, { admin, forMs: 300, isAddressShared: false })).toBeGreaterThan(900);
    const refusing = await envoy(0, 503);
    const request = { forMs: 100, isAddressShared: false };
    await expect(drainGateway(world, { ...request, admin: refusing.admin })).rejects.toThrow('answers 503');
    for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
    await expect(drainGateway(world, { ...request, admin })).rejects.toThrow();
  });

  test.each(['', '-1', '1.5', '301', 'soon', '1e2'])('--for %j -> refused by name', (text) => {
    expect(() => drainMs(text, '--for')).toThrow(`--for ${JSON.stringify(text)}: expected seconds from 0 to 300`);
  });

  test('the report -> says how many connections are left', () => {
    expect([0, 1, 2].map(drainedText)).toEqual([
      'drained: no connection is open',
      '1 connection is still open and will end with the gateway',
      '2 connections are still open and will end with the gateway',
    ]);
  });
});
