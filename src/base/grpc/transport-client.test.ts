// The client on the loopback: a call that ends at an awkward moment.

import { afterEach, expect, test } from 'vitest';
import { silentLog } from '../log.ts';
import { createRealWorld } from '../real/world.ts';
import { issueCertificate } from '../x509/certificates.ts';
import { generatePrivateKey } from '../x509/edge/keys.ts';
import type { ClientCall } from './transport-client.ts';
import { dial } from './transport-client.ts';
import { serveGrpc } from './transport-server.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const identity = 'spiffe://acme.example/owner';

function issue() {
  const { random, clock } = createRealWorld();
  const key = generatePrivateKey();
  const nowMs = clock.wallMs();
  const dates = { notBeforeMs: nowMs - 60_000, notAfterMs: nowMs + 60_000 };
  const subject = { commonName: 'owner' };
  const authorityKey = generatePrivateKey();
  const root = { subject: { commonName: 'root' }, key: authorityKey };
  return {
    authority: issueCertificate({ ...root, use: { kind: 'authority' }, serial: random.bytes(16), ...dates }),
    certificate: issueCertificate({
      ...{ subject, key, issuer: root, serial: random.bytes(16), ...dates },
      use: { kind: 'identity', uris: [identity] },
    }),
    key,
  };
}

test('grpc client: a call cancelled while its connection opens -> closed once, and the process lives on', async () => {
  const { authority, certificate, key } = issue();
  const server = await serveGrpc<string>({
    ...{ host: '127.0.0.1', port: 0, messageBytesMax: 1000, keepAliveMs: 10_000, log: silentLog },
    tls: { certificate, key },
    judge: () => ({ kind: 'trusted', caller: 'local' }),
    callerKey: (caller) => caller,
    accept: (call) => ({ onMessage: (message) => call.send(message), onDrain() {}, onClosed() {} }),
  });
  closing.push(() => server.close());
  const closed: string[] = [];
  // Node announces the connection in a later tick than the one in which the certificate is checked.
  const ended = new Promise<void>((resolve) => {
    const call: ClientCall = dial(
      {
        ...{ address: `https://127.0.0.1:${server.port}`, path: '/a/b', headers: {}, certificate, key },
        ...{ roots: [authority], messageBytesMax: 1000, connectMsMax: 5000, keepAliveMs: 10_000 },
        isExpected: (found) => {
          process.nextTick(() => call.cancel());
          return found === identity;
        },
      },
      {
        ...{ onOpened() {}, onMessage() {}, onOversized() {}, onAlive() {} },
        onClosed: (_code, reason) => {
          closed.push(reason);
          setTimeout(resolve, 100);
        },
      },
    );
  });
  await ended;
  expect(closed).toEqual(['cancelled by us']);
});
