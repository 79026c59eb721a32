// Answers that go on: events as they come, readers that do not read, streams that fail.

import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import { Spout, sendHttp2, stream, text, until } from './testing/bench.ts';
import { edgeSuite } from './testing/edge-suite.ts';
import { getFrame, opening } from './testing/frames.ts';

const { open } = edgeSuite();

describe('edge: streams', () => {
  test.each(['http1', 'http2'] as const)(
    'edge: an event over %s -> leaves at once, not with the next one',
    async (protocol) => {
      const spout = new Spout();
      const { raw, http2 } = await open(() => stream(spout));
      const received: string[] = [];
      if (protocol === 'http2')
        http2()
          .request({ ':path': '/' })
          .on('data', (data) => received.push(String(data)));
      else {
        const socket = await raw({ ALPNProtocols: ['http/1.1'] });
        socket.on('data', (data) => received.push(String(data)));
        socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      }
      spout.push('one\n');
      await until(() => received.join('').includes('one\n'));
      spout.push('two\n');
      await until(() => received.join('').includes('two\n'));
    },
  );

  test('edge: events that are ready together -> leave together', async () => {
    const spout = new Spout();
    const { http2 } = await open(() => stream(spout));
    const watch = http2().request({ ':path': '/' });
    await once(watch, 'response');
    const chunks: string[] = [];
    watch.on('data', (data) => chunks.push(String(data)));
    spout.push(...Array.from({ length: 100 }, (_, index) => `event ${index}\n`));
    await until(() => chunks.join('').includes('event 99\n'));
    expect(chunks.length).toBe(1);
  });

  test.each(['http1', 'http2'] as const)(
    'edge: a reader over %s that does not read -> nothing more is produced, it is cut off, others are unharmed',
    async (protocol) => {
      const spout = new Spout();
      const metrics = createMetrics();
      const { raw, http2 } = await open((request) => (request.path === '/watch' ? stream(spout) : text('hello')), {
        limits: { stallMsMax: 300 },
        metrics,
      });
      const chunk = 'x'.repeat(64 * 1024);
      spout.push(...Array.from({ length: 2000 }, () => chunk));
      if (protocol === 'http2') {
        const watch = http2().request({ ':path': '/watch' });
        watch.on('error', () => {});
        await once(watch, 'response');
      } else {
        const socket = await raw({ ALPNProtocols: ['http/1.1'] });
        socket.pause();
        socket.write('GET /watch HTTP/1.1\r\nhost: x\r\n\r\n');
      }
      await until(() => spout.pulls > 0);
      const other = http2();
      expect((await sendHttp2(other)).status).toBe(200);
      await spout.returned;
      expect(spout.pulls).toBeLessThan(500);
      expect((await sendHttp2(other)).status).toBe(200);
      expect(await metrics.text()).toContain('portolan_http_readers_cut_total 1');
    },
  );

  test('edge: one stream of a connection is not read -> only that stream is cut off', async () => {
    const [slow, live] = [new Spout(), new Spout()];
    const { http2 } = await open((request) => stream(request.path === '/slow' ? slow : live), {
      limits: { stallMsMax: 200 },
    });
    const session = http2();
    const unread = session.request({ ':path': '/slow' });
    unread.on('error', () => {});
    const read = session.request({ ':path': '/live' });
    const received: string[] = [];
    read.on('data', (data) => received.push(String(data)));
    slow.push(...Array.from({ length: 200 }, () => 'x'.repeat(16 * 1024)));
    await slow.returned;
    await new Promise((resolve) => setTimeout(resolve, 500));
    live.push('still here');
    await until(() => received.includes('still here'));
  });

  test('edge: a connection from which nothing is read -> closed altogether', async () => {
    const spout = new Spout();
    const { raw } = await open(() => stream(spout), { limits: { stallMsMax: 150 } });
    spout.push(...Array.from({ length: 2000 }, () => 'x'.repeat(64 * 1024)));
    const socket = await raw({ ALPNProtocols: ['h2'] });
    socket.write(Buffer.concat([opening, getFrame(1)]));
    await until(() => spout.pulls > 0);
    socket.pause();
    await spout.returned;
    await until(() => isGone(socket));
  });

  test.each(['http1', 'http2'] as const)(
    'edge: a stream that fails over %s -> broken off, not ended',
    async (protocol) => {
      const failing = async function* () {
        yield Buffer.from('one\n');
        throw new Error('the store went away');
      };
      const { http1, http2 } = await open(() => stream(failing()));
      const answer = protocol === 'http1' ? http1() : sendHttp2(http2());
      await expect(answer).rejects.toThrow();
    },
  );
});

/** A paused socket does not report its end: a write does. */
function isGone(socket: { write(data: Buffer): boolean; destroyed: boolean }): boolean {
  if (!socket.destroyed) socket.write(Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
  return socket.destroyed;
}
