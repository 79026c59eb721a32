// Clients by the protocol that they speak: HTTP/2, HTTP/1.1, old TLS, plaintext.

import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { StatusError } from '../model/status.ts';
import { closed, sendHttp2, text, until } from './testing/bench.ts';
import { edgeSuite } from './testing/edge-suite.ts';

const { open, pki } = edgeSuite();

describe('edge: protocols', () => {
  test('edge: a client that speaks HTTP/2 -> answered in HTTP/2', async () => {
    const { http2, seen } = await open(() => text('hello'));
    const session = http2();
    const answer = await sendHttp2(session, { method: 'POST', path: '/api/v1?watch=0', body: 'body' });
    expect(answer).toMatchObject({ status: 200, body: 'hello' });
    expect(session.alpnProtocol).toBe('h2');
    expect(seen[0]).toMatchObject({ method: 'POST', path: '/api/v1?watch=0' });
    expect(Buffer.from(seen[0]?.body ?? []).toString()).toBe('body');
  });

  test('edge: a client that speaks HTTP/1.1 -> answered in HTTP/1.1, on one connection for several requests', async () => {
    const { raw, seen } = await open(() => text('hello'));
    const socket = await raw({ ALPNProtocols: ['http/1.1'] });
    const answers: string[] = [];
    socket.on('data', (data) => answers.push(String(data)));
    socket.write('GET /a HTTP/1.1\r\nhost: x\r\n\r\n');
    await until(() => answers.join('').includes('hello'));
    socket.write('GET https://x/b?c HTTP/1.1\r\nhost: x\r\n\r\n');
    await until(() => answers.join('').split('hello').length === 3);
    expect(seen.map((request) => request.path)).toEqual(['/a', '/b?c']);
  });

  test('edge: TLS older than 1.2 -> refused', async () => {
    const { server } = await open(() => text('never'));
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' } as const;
    const socket = connectTls({
      host: '127.0.0.1',
      port: server.address.port,
      ca: pki().clientCa,
      ...old,
      ciphers: 'ALL:@SECLEVEL=0',
    });
    const [error] = await once(socket, 'error');
    expect(String(error)).toMatch(/alert protocol version|unsupported protocol|no protocols available/i);
  });

  test('edge: plaintext -> closed without an answer, others go on', async () => {
    const { server, http1, seen } = await open(() => text('hello'));
    const socket = connectTcp(server.address.port, '127.0.0.1');
    socket.on('error', () => {});
    const received: string[] = [];
    socket.on('data', (data) => received.push(data.toString('latin1')));
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    await closed(socket);
    expect(received.join('')).not.toContain('HTTP/1.1');
    expect(seen).toEqual([]);
    expect((await http1()).status).toBe(200);
  });

  test.each(['http1', 'http2'] as const)('edge: HEAD over %s -> the headers of GET and no body', async (protocol) => {
    const { http1, http2, seen } = await open(() => text('twelve bytes'));
    const answer =
      protocol === 'http1' ? await http1({ method: 'HEAD' }) : await sendHttp2(http2(), { method: 'HEAD' });
    expect(answer).toMatchObject({ status: 200, body: '' });
    expect(answer.headers['content-length']).toBe('12');
    expect(seen[0]?.method).toBe('GET');
  });

  test.each(['http1', 'http2'] as const)(
    'edge: an answer of many megabytes over %s -> arrives whole',
    async (protocol) => {
      const big = 'x'.repeat(5_000_001);
      const { http1, http2 } = await open(() => text(big));
      const answer = protocol === 'http1' ? await http1() : await sendHttp2(http2());
      expect(answer.body.length).toBe(big.length);
    },
  );

  test('edge: the API throws -> a Status that says so, and the server goes on', async () => {
    const { http1 } = await open((request) => {
      if (request.path === '/status') throw new StatusError('Gone', 'it has left');
      if (request.path === '/bug') throw new Error('a bug');
      return text('hello');
    });
    const gone = await http1({ path: '/status' });
    expect(gone.status).toBe(410);
    expect(JSON.parse(gone.body)).toMatchObject({ kind: 'Status', reason: 'Gone', message: 'it has left', code: 410 });
    expect((await http1({ path: '/bug' })).status).toBe(500);
    expect((await http1()).status).toBe(200);
  });
});
