import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import { issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { StatusError } from '../request/status.ts';
import type { AuditEvent } from '../security/audit.ts';
import type { Pki } from '../security/pki.ts';
import type { ServeOptions } from './server.ts';
import {
  type Bench,
  closed,
  type Http2Request,
  openBench,
  openTestPki,
  readAnswer,
  type Script,
  Spout,
  sendHttp2,
  stream,
  text,
  until,
} from './testing/bench.ts';

let pki: Pki;
let removePki: () => void;
let bench: Bench;
const dayMs = 24 * 60 * 60 * 1000;

beforeAll(async () => {
  const opened = await openTestPki();
  pki = opened.pki;
  removePki = opened.remove;
});
afterAll(() => removePki());
afterEach(() => bench?.close());

async function open(script: Script, options: Partial<ServeOptions> = {}): Promise<Bench> {
  bench = await openBench(pki, script, options);
  return bench;
}

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
    const { raw } = await open(() => text('hello'));
    const socket = await raw({ ALPNProtocols: ['http/1.1'] });
    const answers: string[] = [];
    socket.on('data', (data) => answers.push(String(data)));
    socket.write('GET /a HTTP/1.1\r\nhost: x\r\n\r\n');
    await until(() => answers.join('').includes('hello'));
    socket.write('GET https://x/b?c HTTP/1.1\r\nhost: x\r\n\r\n');
    await until(() => answers.join('').split('hello').length === 3);
    expect(bench.seen.map((request) => request.path)).toEqual(['/a', '/b?c']);
  });

  test('edge: TLS older than 1.2 -> refused', async () => {
    const { server } = await open(() => text('never'));
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' } as const;
    const socket = connectTls({
      host: '127.0.0.1',
      port: server.address.port,
      ca: pki.clientCa,
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

describe('edge: client certificates', () => {
  const ask = async (credentials: { certificate: string; key: string } | undefined, protocol: 'http1' | 'http2') => {
    const { http1, http2, seen } = await open(() => text('hello'));
    await (protocol === 'http1' ? http1(credentials) : sendHttp2(http2(credentials)));
    const { clientCertificate, clientCertificateError } = seen[0] ?? {};
    return { clientCertificate, clientCertificateError };
  };

  test.each(['http1', 'http2'] as const)('edge: ours over %s -> user from CN, groups from O', async (protocol) => {
    const client = pki.signClient({ commonName: 'ann', organizations: ['dev', 'ops'], lifetimeMs: dayMs });
    expect(await ask(client, protocol)).toEqual({
      clientCertificate: { commonName: 'ann', organizations: ['dev', 'ops'], endsMs: expect.any(Number) },
      clientCertificateError: undefined,
    });
  });

  test('edge: none -> nobody, and nothing is wrong', async () => {
    expect(await ask(undefined, 'http2')).toEqual({ clientCertificate: undefined, clientCertificateError: undefined });
  });

  test('edge: from a foreign authority of the same name -> refused, whatever it claims', async () => {
    const other = await openTestPki();
    const client = other.pki.signClient({ commonName: 'admin', organizations: ['system:masters'], lifetimeMs: dayMs });
    other.remove();
    const found = await ask(client, 'http1');
    expect(found.clientCertificate).toBeUndefined();
    expect(found.clientCertificateError).toMatch(/UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|SIGNATURE/);
  });

  test('edge: signed by itself -> refused', async () => {
    const key = generatePrivateKey();
    const certificate = issueCertificate({
      subject: { commonName: 'admin', organizations: ['system:masters'] },
      key,
      use: { kind: 'client' },
      serial: Buffer.alloc(16, 7),
      notBeforeMs: Date.now() - dayMs,
      notAfterMs: Date.now() + dayMs,
    });
    const found = await ask({ certificate, key }, 'http2');
    expect(found).toMatchObject({ clientCertificate: undefined, clientCertificateError: expect.any(String) });
  });

  test('edge: past its time -> refused', async () => {
    const client = pki.signClient({ commonName: 'ann', organizations: [], lifetimeMs: -1000 });
    expect(await ask(client, 'http1')).toEqual({
      clientCertificate: undefined,
      clientCertificateError: 'CERT_HAS_EXPIRED',
    });
  });

  test('edge: expires while its connection is open -> refused from then on', async () => {
    const client = pki.signClient({ commonName: 'ann', organizations: [], lifetimeMs: dayMs });
    let skewMs = 0;
    const clock = { wallMs: () => Date.now() + skewMs, monotonicMs: () => performance.now() };
    const { http2, seen } = await open(() => text('hello'), { world: { clock, random: { ...noRandom } } });
    const session = http2(client);
    await sendHttp2(session);
    skewMs = 2 * dayMs;
    await sendHttp2(session);
    expect(seen.map((request) => request.clientCertificateError)).toEqual([undefined, 'CERT_HAS_EXPIRED']);
  });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'edge: a %s session taken up again without its certificate -> nobody',
    async (version) => {
      const client = pki.signClient({ commonName: 'ann', organizations: [], lifetimeMs: dayMs });
      const { raw, seen } = await open(() => text('hello'));
      const tls = { ALPNProtocols: ['http/1.1'], minVersion: version, maxVersion: version };
      const first = await raw({ ...tls, cert: client.certificate, key: client.key });
      let session = first.getSession();
      first.on('session', (ticket) => (session = ticket));
      const get = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
      first.write(get);
      await drain(first);
      const second = await raw({ ...tls, session });
      expect(second.isSessionReused()).toBe(false);
      second.write(get);
      await drain(second);
      expect(seen.map((request) => request.clientCertificate?.commonName)).toEqual(['ann', undefined]);
    },
  );

  test("edge: the server's own certificate shown by a client -> refused, it is for serving", async () => {
    const found = await ask(pki.serverCredentials(), 'http1');
    expect(found).toEqual({ clientCertificate: undefined, clientCertificateError: 'INVALID_PURPOSE' });
  });
});

const noRandom = { float: () => 0, bytes: (count: number) => new Uint8Array(count), uuid: () => 'id' };

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

/** Preface, and settings with the largest windows. */
const opening = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff]),
  Buffer.from([0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0]),
]);

/** HPACK static table: :method GET, :scheme https, :path /, and :authority x. */
function getFrame(id: number): Buffer {
  const block = Buffer.from([0x82, 0x87, 0x84, 0x41, 0x01, 0x78]);
  return Buffer.concat([Buffer.from([0, 0, block.length, 1, 5, 0, 0, id >> 8, id & 0xff]), block]);
}

function resetFrame(id: number): Buffer {
  return Buffer.from([0, 0, 4, 3, 0, 0, 0, id >> 8, id & 0xff, 0, 0, 0, 8]);
}

/** A paused socket does not report its end: a write does. */
function isGone(socket: { write(data: Buffer): boolean; destroyed: boolean }): boolean {
  if (!socket.destroyed) socket.write(Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
  return socket.destroyed;
}

describe('edge: stopping', () => {
  test.each(['http1', 'http2'] as const)(
    'edge: close with requests in flight over %s -> answered, watches ended, nothing new taken',
    async (protocol) => {
      const spout = new Spout();
      let finish: () => void = () => {};
      const { http1, http2, server, seen } = await open(async (request) => {
        if (request.path === '/watch') return stream(spout);
        await new Promise<void>((resolve) => (finish = resolve));
        return text('done');
      });
      const session = http2();
      const watch = session.request({ ':path': '/watch' });
      const ended = once(watch.resume(), 'end');
      await once(watch, 'response');
      const goaway = once(session, 'goaway');
      const slow = protocol === 'http1' ? http1({ path: '/slow' }) : sendHttp2(session, { path: '/slow' });
      await until(() => seen.length === 2);
      const closing = server.close();
      await Promise.all([ended, goaway, spout.returned]);
      await expect(http1({ path: '/late' })).rejects.toThrow();
      finish();
      expect(await slow).toMatchObject({ status: 200, body: 'done' });
      await closing;
      expect(seen.length).toBe(2);
    },
  );

  test('edge: a long list is being sent while the server stops -> sent to its end', async () => {
    const list = new Spout();
    const { http2, server, seen } = await open(async () => stream(list, false));
    const answer = sendHttp2(http2());
    await until(() => seen.length === 1 && list.pulls > 0);
    list.push('{"items":[1');
    await until(() => list.pulls > 1);
    const closing = server.close();
    list.push(',2]}');
    list.end();
    expect(await answer).toMatchObject({ status: 200, body: '{"items":[1,2]}' });
    await closing;
  });

  test('edge: a watch that begins while the server stops -> ended at once', async () => {
    const spout = new Spout();
    let begin: () => void = () => {};
    const { http2, server, seen } = await open(async () => {
      await new Promise<void>((resolve) => (begin = resolve));
      return stream(spout);
    });
    const answer = sendHttp2(http2());
    await until(() => seen.length === 1);
    const closing = server.close();
    begin();
    expect(await answer).toMatchObject({ status: 200, body: '' });
    await Promise.all([closing, spout.returned]);
  });

  test('edge: a port that is taken -> says which, and what to do', async () => {
    const { server } = await open(() => text('hello'));
    const listen = { host: '127.0.0.1', port: server.address.port };
    await expect(openBench(pki, () => text('never'), { listen })).rejects.toThrow(
      /cannot listen on 127\.0\.0\.1:\d+, choose another address with --listen/,
    );
  });

  test('edge: close while a request never ends -> gives up after its grace', async () => {
    const { http1, server, seen } = await open(() => new Promise(() => {}), { limits: { graceMsMax: 100 } });
    const stuck = http1();
    stuck.catch(() => {});
    await until(() => seen.length === 1);
    await server.close();
    await expect(stuck).rejects.toThrow();
  });
});

describe('edge: renewal', () => {
  test('edge: a new serving certificate -> new connections get it, an open stream goes on', async () => {
    const spout = new Spout();
    let credentials = pki.serverCredentials();
    let renew: () => void = () => {};
    const renewing = {
      clientCa: pki.clientCa,
      serverCredentials: () => credentials,
      onRenewed: (listener: (next: typeof credentials) => void) => {
        renew = () => listener(credentials);
        return () => {};
      },
    };
    const { http2, raw } = await open((request) => (request.path === '/watch' ? stream(spout) : text('hello')), {
      pki: renewing,
    });
    const before = (await raw()).getPeerX509Certificate()?.fingerprint256;
    const watch = http2().request({ ':path': '/watch' });
    await once(watch, 'response');
    const next = await openTestPki();
    credentials = next.pki.serverCredentials();
    next.remove();
    renew();
    const after = (await raw({ ca: next.pki.clientCa })).getPeerX509Certificate()?.fingerprint256;
    expect(after).not.toBe(before);
    spout.push('still here');
    expect(String((await once(watch, 'data'))[0])).toBe('still here');
  });
});

describe('edge: seen while it runs', () => {
  test('edge: audit switched on while it runs -> a line for each request from then on, two for a watch', async () => {
    const spout = new Spout();
    const events: AuditEvent[] = [];
    const { http1, http2, server } = await open((request) => {
      if (request.trail !== undefined) request.trail.user = { name: 'ann', groups: ['dev'] };
      return request.path.includes('watch') ? stream(spout) : text('{}', 201);
    });
    await http1({ path: '/before' });
    server.setAudit({ record: (event) => events.push(event) });
    await http1({ method: 'POST', path: '/api/v1/namespaces/shop/services', headers: { 'user-agent': 'kubectl' } });
    const watch = http2().request({ ':path': '/apis/apps/v1/deployments?watch=true' });
    await once(watch, 'response');
    spout.end();
    await until(() => events.length === 3);
    server.setAudit(undefined);
    await http1({ path: '/after' });
    expect(events).toMatchObject([
      {
        stage: 'ResponseComplete',
        verb: 'create',
        user: { username: 'ann', groups: ['dev'] },
        objectRef: { resource: 'services', namespace: 'shop', apiVersion: 'v1' },
        sourceIPs: ['127.0.0.1'],
        userAgent: 'kubectl',
        responseStatus: { code: 201 },
      },
      { stage: 'ResponseStarted', verb: 'watch', objectRef: { resource: 'deployments', apiGroup: 'apps' } },
      { stage: 'ResponseComplete', verb: 'watch' },
    ]);
    expect(events[1]?.auditID).toBe(events[2]?.auditID);
    expect(events[0]?.auditID).not.toBe(events[1]?.auditID);
  });

  test('edge: metrics -> requests by method and code, open connections', async () => {
    const metrics = createMetrics();
    const { http1, raw } = await open(() => text('hello', 404), { metrics });
    await http1();
    await http1({ method: 'DELETE' });
    await raw();
    const shown = await metrics.text();
    expect(shown).toContain('portolan_http_requests_total{method="GET",code="404"} 1');
    expect(shown).toContain('portolan_http_requests_total{method="DELETE",code="404"} 1');
    expect(shown).toMatch(/portolan_http_connections [1-3]\n/);
  });
});

/** Everything a socket receives until it is closed. */
async function drain(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (data: Buffer) => chunks.push(data));
  await closed(socket);
  return Buffer.concat(chunks).toString('latin1');
}
