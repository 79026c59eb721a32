// TLS servers on loopback, as a probe sees them.

import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { createAuthority } from '../../external/testing/pem.ts';
import { probeTls } from './prober-tls.ts';

const closing: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

const ask = (port: number) => probeTls({ address: '127.0.0.1', port, serverName: 'a.example', timeoutMs: 500 });
const pair = () => {
  const { certificate, key } = createAuthority().issue({ kind: 'server', hosts: ['a.example'] });
  return { cert: certificate, key };
};

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'probe of TLS: a server of %s that wants a certificate of ours -> it answers',
  async (maxVersion) => {
    const options = { ...pair(), requestCert: true, rejectUnauthorized: true, minVersion: maxVersion, maxVersion };
    const names: string[] = [];
    const SNICallback = (name: string, done: (error: null) => void) => {
      names.push(name);
      done(null);
    };
    const port = await listening(createTlsServer({ ...options, SNICallback }).on('tlsClientError', () => {}));
    expect(await ask(port)).toBe('');
    expect(names).toEqual(['a.example']);
  },
);

test('probe of TLS: nothing listens -> refused', async () => {
  const server = createTcpServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  expect(await ask(port)).toBe('connection refused');
});

test('probe of TLS: a server that closes, as an ingress does that does not know the name -> said so', async () => {
  const port = await listening(
    createTcpServer((socket) => socket.on('error', () => {}).once('data', () => socket.end())),
  );
  expect(await ask(port)).toMatch(/^it closes connections for a\.example/);
});

test('probe of TLS: a server that says nothing -> within the time', async () => {
  const sockets = new Set<{ destroy(): void }>();
  const port = await listening(createTcpServer((socket) => void sockets.add(socket)));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
  });
  expect(await ask(port)).toBe('no answer within 0.5 s');
});
