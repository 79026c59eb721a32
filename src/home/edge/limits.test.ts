// Bounds on one request: its size, its time, and the time of its answer.

import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { drain, type Http2Request, readAnswer, Spout, sendHttp2, stream, text } from './testing/bench.ts';
import { edgeSuite } from './testing/edge-suite.ts';

const { open } = edgeSuite();

describe('edge: what a request may take', () => {
  const limits = { bodyBytesMax: 100_000, headerBytesMax: 16_384 };

  test.each(['http1', 'http2'] as const)('edge: a body too large over %s -> 413 Status', async (protocol) => {
    const { http1, http2, seen } = await open(() => text('hello'), { limits });
    const body = Buffer.alloc(100_001);
    const declared = { method: 'POST', body, headers: { 'content-length': '100001' } };
    const undeclared = {
      method: 'POST',
      body,
      headers: protocol === 'http1' ? { 'transfer-encoding': 'chunked' } : {},
    };
    for (const request of [declared, undeclared] as Http2Request[]) {
      const answer = protocol === 'http1' ? await http1(request) : await sendHttp2(http2(), request);
      expect(answer.status).toBe(413);
      expect(JSON.parse(answer.body)).toMatchObject({ reason: 'RequestEntityTooLarge', code: 413 });
    }
    expect(seen).toEqual([]);
    const fitting = { method: 'POST', body: Buffer.alloc(100_000) };
    expect((await (protocol === 'http1' ? http1(fitting) : sendHttp2(http2(), fitting))).status).toBe(200);
  });

  test.each(['http1', 'http2'] as const)(
    'edge: heavy headers again and again over %s -> the connection is ended; light requests of the address go on',
    async (protocol) => {
      const { http1, http2, raw, seen } = await open(() => text('hello'), {
        limits: { heavyHeaderBytes: 4000, heavyHeadersBurst: 50_000, heavyHeadersPerSecond: 1 },
      });
      const heavy = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`x-${n}`, 'y'.repeat(50)]));
      if (protocol === 'http2') {
        const session = http2();
        session.on('error', () => {});
        const ended = once(session, 'close');
        for (let count = 0; count < 20; count++) void sendHttp2(session, { headers: heavy }).catch(() => {});
        await ended;
      } else {
        const socket = await raw({ ALPNProtocols: ['http/1.1'] });
        const answers = drain(socket);
        const lines = Object.entries(heavy).map(([name, value]) => `${name}: ${value}\r\n`);
        for (let count = 0; count < 20; count++) socket.write(`GET / HTTP/1.1\r\nhost: x\r\n${lines.join('')}\r\n`);
        await once(socket, 'close');
        expect((await answers).toString()).toMatch(/HTTP\/1.1 429 Too Many Requests/);
      }
      expect(seen.length).toBeLessThan(10);
      expect((await http1({ path: '/light' })).status).toBe(200);
      expect((await sendHttp2(http2())).status).toBe(200);
    },
  );

  test('edge: all bodies together too large -> 429 for the one too many, room again when one is done', async () => {
    const { http2, seen } = await open(() => text('hello'), { limits: { ...limits, bodiesBytesMax: 150_000 } });
    const session = http2();
    const first = session.request({ ':method': 'POST', ':path': '/' });
    first.write(Buffer.alloc(90_000));
    await sendHttp2(session);
    const second = await sendHttp2(session, { method: 'POST', body: Buffer.alloc(90_000) });
    expect([second.status, second.headers['retry-after']]).toEqual([429, '1']);
    first.end('.');
    expect((await readAnswer(first)).status).toBe(200);
    expect((await sendHttp2(session, { method: 'POST', body: Buffer.alloc(90_000) })).status).toBe(200);
    expect(seen.map(({ body }) => body?.length)).toEqual([undefined, 90_001, 90_000]);
  });

  test('edge: refused before its body was read, over HTTP/2 -> answered, the body is not waited for', async () => {
    const { http2 } = await open(() => text(''), { api: { handle: async () => text('no', 403) } });
    const session = http2();
    const post = session.request({ ':method': 'POST', ':path': '/' });
    post.write(Buffer.alloc(50_000));
    expect(await readAnswer(post)).toMatchObject({ status: 403, body: 'no' });
    expect((await sendHttp2(session)).status).toBe(403);
  });

  test('edge: refused before its body was read, over HTTP/1.1 -> answered, the connection goes on', async () => {
    const { raw } = await open(() => text(''), { api: { handle: async () => text('no', 403) } });
    const socket = await raw({ ALPNProtocols: ['http/1.1'] });
    const answers = drain(socket);
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50000\r\n\r\n${'x'.repeat(20_000)}`);
    await once(socket, 'data');
    socket.write(`${'x'.repeat(30_000)}GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    expect((await answers).match(/HTTP\/1.1 403/g)).toHaveLength(2);
  });

  test('edge: headers too large over HTTP/1.1 -> 431', async () => {
    const { http1, seen } = await open(() => text('hello'), { limits });
    expect((await http1({ headers: { big: 'x'.repeat(20_000) } })).status).toBe(431);
    expect((await http1({ headers: { big: 'x'.repeat(10_000) } })).status).toBe(200);
    expect(seen.length).toBe(1);
  });

  test('edge: headers too large over HTTP/2 -> that stream is refused', async () => {
    const { http2, seen } = await open(() => text('hello'), { limits });
    const session = http2();
    const tooLarge = { headers: { big: 'x'.repeat(20_000) } };
    expect((await sendHttp2(session, tooLarge)).status).toBe(431);
    // By now the client has acknowledged the limit, and HTTP/2 itself holds it to that.
    await expect(sendHttp2(session, tooLarge)).rejects.toThrow();
    expect(seen).toEqual([]);
    expect((await sendHttp2(session, { headers: { big: 'x'.repeat(10_000) } })).status).toBe(200);
  });

  test('edge: headers that come a byte at a time over HTTP/1.1 -> 408, closed', async () => {
    const { raw, seen } = await open(() => text('hello'), { limits: { headersMsMax: 200 } });
    const socket = await raw({ ALPNProtocols: ['http/1.1'] });
    const answer = drain(socket);
    const drip = setInterval(() => socket.write('x'), 20);
    socket.write('GET / HTTP/1.1\r\nhost: x\r\nslow: ');
    const received = await answer;
    clearInterval(drip);
    expect(received === '' || received.startsWith('HTTP/1.1 408')).toBe(true);
    expect(seen).toEqual([]);
  });

  test('edge: headers on a used connection that never end -> closed', async () => {
    const { raw } = await open(() => text('hello'), { limits: { headersMsMax: 200 } });
    const socket = await raw({ ALPNProtocols: ['http/1.1'] });
    const answer = drain(socket);
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: ');
    expect(await answer).toContain('hello');
  });

  test.each(['http1', 'http2'] as const)('edge: a body that does not come over %s -> 504 Timeout', async (protocol) => {
    const { raw, http2, seen } = await open(() => text('hello'), { limits: { bodyMsMax: 100 } });
    if (protocol === 'http1') {
      const socket = await raw({ ALPNProtocols: ['http/1.1'] });
      const answer = drain(socket);
      socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc');
      expect(await answer).toMatch(/^HTTP\/1.1 504[\s\S]*"reason":"Timeout"/);
    } else {
      const post = http2().request({ ':method': 'POST', ':path': '/' });
      post.write('abc');
      const [headers] = await once(post, 'response');
      expect(headers[':status']).toBe(504);
    }
    expect(seen).toEqual([]);
  });

  test('edge: the API does not answer in time -> 504, and it is told to stop', async () => {
    let signal: AbortSignal | undefined;
    const { http1 } = await open(
      (request) => {
        signal = request.signal;
        return new Promise(() => {});
      },
      { limits: { handleMsMax: 100 } },
    );
    expect((await http1()).status).toBe(504);
    expect(signal?.aborted).toBe(true);
  });

  test('edge: a stream that comes too late to be sent -> let go', async () => {
    const spout = new Spout();
    let finish: () => void = () => {};
    const { http1 } = await open(
      async () => {
        await new Promise<void>((resolve) => (finish = resolve));
        return stream(spout);
      },
      { limits: { handleMsMax: 100 } },
    );
    expect((await http1()).status).toBe(504);
    finish();
    await spout.returned;
  });
});
