import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createRealProber } from './prober.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

test('prober: tcp -> good if somebody listens, bad with the reason if not', async () => {
  const server = createTcpServer((socket) => socket.on('error', () => {}));
  const port = await listen(server);
  expect(await tcp(port)).toEqual({ isGood: true });
  server.close();
  await once(server, 'close');
  expect(await tcp(port)).toEqual({ isGood: false, reason: expect.stringContaining('ECONNREFUSED') });
});

test.each([
  [200, true],
  [204, true],
  [302, true],
  [404, false],
  [503, false],
])('prober: http that answers %i -> good: %s', async (status, isGood) => {
  const seen: (string | undefined)[] = [];
  const port = await listen(
    createServer((request, response) => {
      seen.push(`${request.headers.host}${request.url}`);
      response.writeHead(status, { location: '/elsewhere' }).end();
    }),
  );
  const answer = await http(port);
  expect(answer).toEqual(isGood ? { isGood: true } : { isGood: false, reason: `answered ${status}` });
  expect(seen).toEqual(['web.test/healthz']);
});

test('prober: http that never answers -> bad after its time', async () => {
  const port = await listen(createTcpServer((socket) => socket.on('error', () => {})));
  expect(await http(port)).toEqual({ isGood: false, reason: 'no answer within 300 ms' });
});

function tcp(port: number) {
  return createRealProber().probe({ address: '127.0.0.1', port, timeoutMs: 5000 });
}

function http(port: number) {
  const target = { isSecure: false, host: 'web.test', path: '/healthz' };
  return createRealProber().probe({ address: '127.0.0.1', port, http: target, timeoutMs: 300 });
}

async function listen(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
