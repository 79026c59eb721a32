// How many connections and streams there may be, and how long an idle one stays.

import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { describe, expect, test } from 'vitest';
import { closed, drain, Spout, sendHttp2, stream, text, until } from './testing/bench.ts';
import { edgeSuite } from './testing/edge-suite.ts';

const { open } = edgeSuite();

describe('edge: connections', () => {
  test('edge: a connection that says nothing -> closed', async () => {
    const { server, raw } = await open(() => text('hello'), { limits: { headersMsMax: 100 } });
    const plain = connectTcp(server.address.port, '127.0.0.1');
    plain.on('error', () => {});
    await Promise.all([
      closed(plain),
      raw({ ALPNProtocols: ['http/1.1'] }).then(drain),
      raw({ ALPNProtocols: ['h2'] }).then(drain),
    ]);
  });

  test('edge: more streams than one connection may have -> refused, the others go on', async () => {
    const spouts: Spout[] = [];
    const { http2 } = await open(
      () => {
        const spout = new Spout();
        spouts.push(spout);
        return stream(spout);
      },
      { limits: { streamsPerConnectionMax: 3 } },
    );
    const session = http2();
    await once(session, 'remoteSettings');
    expect(session.remoteSettings.maxConcurrentStreams).toBe(3);
    const open3 = [1, 2, 3].map(() => session.request({ ':path': '/' }));
    await until(() => spouts.length === 3);
    spouts[0]?.push('still here');
    const [chunk] = await once(open3[0]!, 'data');
    expect(String(chunk)).toBe('still here');
  });

  test('edge: more connections than there may be -> the one idle longest makes room, busy ones stay', async () => {
    const spout = new Spout();
    const { http2, raw } = await open((request) => (request.path === '/watch' ? stream(spout) : text('hello')), {
      limits: { connectionsMax: 2 },
    });
    const watch = http2().request({ ':path': '/watch' });
    await once(watch, 'response');
    const idle = await raw({ ALPNProtocols: ['http/1.1'] });
    const newcomer = http2();
    expect((await sendHttp2(newcomer)).status).toBe(200);
    await drain(idle);
    spout.push('still here');
    const [chunk] = await once(watch, 'data');
    expect(String(chunk)).toBe('still here');
  });

  test('edge: every connection is busy -> a new one is turned away, the busy ones stay', async () => {
    const spout = new Spout();
    const { http2, raw } = await open(() => stream(spout), { limits: { connectionsMax: 1 } });
    const watch = http2().request({ ':path': '/watch' });
    await once(watch, 'response');
    await expect(raw()).rejects.toThrow('refused');
    spout.push('still here');
    expect(String((await once(watch, 'data'))[0])).toBe('still here');
  });

  test('edge: a connection without requests -> closed after a while, with GOAWAY on HTTP/2', async () => {
    const { http2 } = await open(() => text('hello'), { limits: { idleMsMax: 100 } });
    const session = http2();
    const goaway = once(session, 'goaway');
    await sendHttp2(session);
    expect((await goaway)[0]).toBe(0);
    await closed(session);
  });
});
