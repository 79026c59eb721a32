// Gateways on loopback, as a probe with a certificate sees them.

import { createSecureServer, type Http2SecureServer } from 'node:http2';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createAuthority } from '../../external/testing/pem.ts';
import { probeMutualTls } from './prober-mutual-tls.ts';

const closing: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const east = createAuthority('east');
const west = createAuthority('west');
const identity = 'spiffe://east.prod/gateway';
const named = (uri: string, until?: number) => east.issue({ kind: 'identity', uris: [uri] }, until);
const own = west.issue({ kind: 'identity', uris: ['spiffe://west.prod/node/xds'] });

async function listening(server: Server | Http2SecureServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** A gateway with this certificate that trusts callers of this authority. */
function gateway(pair: { certificate: string; key: string }, { trusts = west, status = 200 } = {}): Promise<number> {
  const tls = { cert: pair.certificate, key: pair.key, ca: trusts.certificate, minVersion: 'TLSv1.3' } as const;
  const server = createSecureServer({ ...tls, requestCert: true, rejectUnauthorized: true });
  server.on('stream', (stream) => stream.respond({ ':status': status }, { endStream: true }));
  server.on('sessionError', () => {});
  return listening(server);
}

const ask = (port: number, timeoutMs = 5000) =>
  probeMutualTls({
    ...{ address: '127.0.0.1', port, serverName: 'west.prod', path: '/healthz', own, identity, timeoutMs },
    roots: [east.certificate],
  });

test('probe with a certificate: the right gateway -> nothing to say; one that is drained -> said so', async () => {
  expect(await ask(await gateway(named(identity)))).toBe('');
  expect(await ask(await gateway(named(identity), { status: 503 }))).toBe('it is being drained');
});

test('probe with a certificate: nothing listens, nothing is said -> refused, and within the time', async () => {
  const server = createTcpServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  expect(await ask(port)).toBe('it refuses connections');
  const sockets = new Set<{ destroy(): void }>();
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
  });
  const silent = await listening(createTcpServer((socket) => void sockets.add(socket)));
  expect(await ask(silent, 300)).toBe('it does not answer within 0.3 s');
});

test('probe with a certificate: the certificate of another, of another root, one that has expired -> each by its reason', async () => {
  expect(await ask(await gateway(named('spiffe://south.prod/gateway')))).toBe(
    `its certificate is that of spiffe://south.prod/gateway, not of ${identity}`,
  );
  const foreign = west.issue({ kind: 'identity', uris: [identity] });
  expect(await ask(await gateway(foreign))).toMatch(/^its certificate is signed by no root of that cluster/);
  const old = named(identity, Date.UTC(2026, 0, 2));
  expect(await ask(await gateway(old))).toMatch(/^its certificate expired Jan {2}2 /);
});

test('probe with a certificate: a gateway that does not know our root, or not our name -> it refuses us', async () => {
  expect(await ask(await gateway(named(identity), { trusts: east }))).toMatch(/^it refuses our certificate/);
  const closer = createTcpServer((socket) => socket.on('error', () => {}).once('data', () => socket.destroy()));
  expect(await ask(await listening(closer))).toBe('it refuses us: it has no configuration for west.prod');
});
