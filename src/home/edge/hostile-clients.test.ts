// Clients that break the rules of HTTP, and callers that leave.

import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { drain, Spout, sendHttp2, stream, text } from './testing/bench.ts';
import { edgeSuite } from './testing/edge-suite.ts';
import { getFrame, opening, resetFrame } from './testing/frames.ts';

const { open } = edgeSuite();

describe('edge: clients that break the rules', () => {
  const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  const frames: [string, Buffer][] = [
    ['garbage after the preface', Buffer.alloc(4096, 0xff)],
    ['garbage instead of the preface', Buffer.alloc(0)],
    ['a frame larger than allowed', Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1])],
    ['DATA on a stream that was never opened', Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 1, 0])],
    ['HEADERS that do not decode', Buffer.concat([Buffer.from([0, 0, 8, 1, 5, 0, 0, 0, 1]), Buffer.alloc(8, 0xff)])],
    ['CONTINUATION out of nowhere', Buffer.from([0, 0, 1, 9, 4, 0, 0, 0, 1, 0])],
    ['WINDOW_UPDATE of zero', Buffer.from([0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0])],
  ];

  test.each(frames)('edge: HTTP/2 with %s -> that session ends, others go on', async (name, bytes) => {
    const { raw, http2, seen } = await open(() => text('hello'));
    const other = http2();
    await sendHttp2(other);
    const socket = await raw({ ALPNProtocols: ['h2'] });
    const ended = drain(socket);
    if (name.startsWith('garbage instead')) socket.write(Buffer.alloc(100, 0x41));
    else socket.write(Buffer.concat([Buffer.from(preface), settings, bytes]));
    await ended;
    expect((await sendHttp2(other)).status).toBe(200);
    expect(seen.length).toBe(2);
  });

  test('edge: HTTP/1.1 garbage -> 400, closed', async () => {
    const { raw } = await open(() => text('hello'));
    const socket = await raw({ ALPNProtocols: ['http/1.1'] });
    const answer = drain(socket);
    socket.write('\0\0\0\0 this is no http\r\n\r\n');
    expect(await answer).toMatch(/^HTTP\/1.1 400/);
  });

  test('edge: streams opened and reset in a burst -> the session ends, work stays bounded, others go on', async () => {
    let atWork = 0;
    let atWorkMost = 0;
    const release: (() => void)[] = [];
    const { http2, raw } = await open(
      async (request) => {
        if (request.path === '/other') return text('hello');
        atWorkMost = Math.max(atWorkMost, ++atWork);
        await new Promise<void>((resolve) => release.push(resolve));
        atWork--;
        return text('late');
      },
      { limits: { resetBurst: 100, resetsPerSecond: 1, streamsPerConnectionMax: 20 } },
    );
    const other = http2();
    const attacker = await raw({ ALPNProtocols: ['h2'] });
    const ended = drain(attacker);
    attacker.write(opening);
    for (let id = 1; id < 1000; id += 2) attacker.write(Buffer.concat([getFrame(id), resetFrame(id)]));
    await ended;
    expect(atWorkMost).toBeGreaterThan(0);
    expect(atWorkMost).toBeLessThanOrEqual(40);
    expect((await sendHttp2(other, { path: '/other' })).status).toBe(200);
    for (const free of release) free();
  });

  test('edge: a caller leaves -> the API is told, and its stream is returned', async () => {
    const spout = new Spout();
    const { http2, seen } = await open(() => stream(spout));
    const watch = http2().request({ ':path': '/' });
    await once(watch, 'response');
    const signal = seen[0]?.signal;
    watch.close(8);
    await spout.returned;
    expect(signal?.aborted).toBe(true);
  });
});
