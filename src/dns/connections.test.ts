// Connections that are held open, half open or broken off, over real sockets: of DNS over TCP and TLS, and of the stub-zone
// endpoint.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import packet, { type DecodedPacket } from 'dns-packet';
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { createRealWorld } from '../base/real/world.ts';
import { type DnsOptions, startDns } from './server.ts';
import { listenFederations } from './sockets/server-federations.ts';
import { describeAnswer, encodeQuestion } from './testing/ask.ts';
import { makeAuthority } from './testing/edge/certs.ts';
import { framed, readFrames, type Target } from './testing/edge/client.ts';
import { sampleCatalog } from './testing/fuzz.ts';

const question = 'checkout.shop.svc.clusterset.local A';
const hosts = ['127.0.0.1'];
const running: { close(): unknown }[] = [];
const authority = makeAuthority('test authority');
const material = authority.issue('dns', { kind: 'server', hosts });

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.close()));
});

async function start(listen: Partial<DnsOptions['listen']>, options: Partial<DnsOptions> = {}) {
  const tls = { port: 0, material };
  const common = { world: createRealWorld(), log: silentLog, catalog: sampleCatalog(), ...options };
  const server = await startDns({ ...common, listen: { hosts, port: 0, tls, ...listen } });
  running.push(server);
  const at = (port: number | undefined) => ({ host: '127.0.0.1', port: port! });
  return { tcp: at(server.tcpPort), tls: at(server.tlsPort) };
}

/** Resolves when the server has ended the connection. */
function whenClosed(socket: Socket): Promise<unknown> {
  socket.on('error', () => {});
  socket.on('data', () => {});
  return new Promise((resolve) => socket.on('close', resolve));
}

/** In tenths of a second. */
function keepaliveIn({ additionals }: DecodedPacket): string | undefined {
  const opt = additionals?.find(({ type }) => type === 'OPT') as { options: { code: number; data: Buffer }[] };
  return opt.options.find(({ code }) => code === 11)?.data.toString('hex');
}

async function askTls(target: Target): Promise<string> {
  const socket = connectTls({ ...target, ca: authority.certificate });
  const reading = readFrames(socket, 1);
  socket.write(framed(encodeQuestion(question)));
  const text = describeAnswer((await reading)[0]!);
  socket.destroy();
  return text;
}

describe('dns connections', () => {
  test('keepalive asked for -> the time that this server keeps connections open, also with an answer of others', async () => {
    const upstream = createSocket('udp4');
    upstream.on('message', (asked, from) => {
      const { id, questions } = packet.decode(asked);
      upstream.send(packet.encode({ type: 'response', id, questions, answers: [] }), from.port, from.address);
    });
    upstream.bind(0, '127.0.0.1');
    await once(upstream, 'listening');
    const forward = { nameservers: [`127.0.0.1:${upstream.address().port}`] };
    const { tcp, tls } = await start({ tcpIdleMs: 20_000 }, { forward });
    for (const socket of [connect(tcp), connectTls({ ...tls, ca: authority.certificate })]) {
      const reading = readFrames(socket, 2);
      const edns = { options: [{ code: 11, data: Buffer.alloc(0) }] };
      for (const asked of [question, 'www.example.com A']) socket.write(framed(encodeQuestion(asked, { edns })));
      expect((await reading).map(keepaliveIn)).toEqual(['00c8', '00c8']);
      socket.destroy();
    }
    upstream.close();
  });

  test('DoT: a handshake that never ends -> closed after its time', async () => {
    // Enough for an honest client on a busy machine.
    const { tls } = await start({ tlsHandshakeMs: 1500, tcpIdleMs: 600_000 });
    await whenClosed(connect(tls));
    const slow = connect(tls);
    slow.write(Buffer.from([22, 3, 1, 2, 0]));
    await whenClosed(slow);
    expect(await askTls(tls)).toBe('243.0.0.7');
  });

  test('DoT: too many that only connect -> the oldest goes, an honest client is served', async () => {
    const { tls } = await start({ tcpConnectionsMax: 3, tlsHandshakeMs: 600_000 });
    const held = [connect(tls), connect(tls), connect(tls)];
    const closed = whenClosed(held[0]!);
    await Promise.all(held.map((socket) => once(socket, 'connect')));
    expect(await askTls(tls)).toBe('243.0.0.7');
    await closed;
    for (const socket of held) socket.destroy();
  });

  test('DoT: after the handshake -> open for as long as it asks, whatever the time for handshakes is', async () => {
    const { tls } = await start({ tlsHandshakeMs: 300 });
    const socket = connectTls({ ...tls, ca: authority.certificate });
    await once(socket, 'secureConnect');
    await new Promise((resolve) => setTimeout(resolve, 400));
    const reading = readFrames(socket, 1);
    socket.write(framed(encodeQuestion(question)));
    expect(describeAnswer((await reading)[0]!)).toBe('243.0.0.7');
    socket.destroy();
  });

  test.each(['tcp', 'tls'] as const)(
    '%s: a client closes its side while its query waits upstream -> answered, then closed',
    async (transport) => {
      const upstream = createSocket('udp4');
      running.push(upstream);
      upstream.on('message', (message, from) => {
        const { id, questions } = packet.decode(message);
        const answers = [{ type: 'A', name: questions![0]!.name, ttl: 60, data: '203.0.113.1' }] as never;
        const reply = packet.encode({ type: 'response', id, questions, answers });
        setTimeout(() => upstream.send(reply, from.port, from.address), 50);
      });
      upstream.bind(0, '127.0.0.1');
      await once(upstream, 'listening');
      const nameservers = [`127.0.0.1:${upstream.address().port}`];
      const target = (await start({}, { forward: { nameservers } }))[transport];
      const socket =
        transport === 'tls'
          ? connectTls({ ...target, ca: authority.certificate, allowHalfOpen: true } as never)
          : connect({ ...target, allowHalfOpen: true });
      const reading = readFrames(socket, 2);
      const closed = once(socket, 'end');
      socket.end(Buffer.concat([framed(encodeQuestion(question)), framed(encodeQuestion('www.example.com A'))]));
      expect((await reading).map(describeAnswer)).toEqual(['243.0.0.7', '203.0.113.1']);
      await closed;
    },
  );

  test('stub-zone endpoint: handshakes that never end, requests broken off -> they go, the next is served', async () => {
    const federations = { handle: async () => ({ status: 200, headers: {}, body: Buffer.from('served') }) } as never;
    const limits = { handshakeMs: 1500, connectionsMax: 3 };
    const common = { host: '127.0.0.1', port: 0, clientAuthority: authority.certificate, federations };
    const endpoint = await listenFederations({ ...common, ...material, ...limits });
    running.push(endpoint);
    const target = { host: '127.0.0.1', port: endpoint.port };
    await whenClosed(connect(target));
    const held = [connect(target), connect(target), connect(target)];
    await Promise.all(held.map((socket) => once(socket, 'connect')));
    const broken = connectTls({ ...target, ca: authority.certificate });
    await once(broken, 'secureConnect');
    await new Promise((resolve) =>
      broken.write('POST /federations/x HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{', resolve),
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    broken.destroy();
    const socket = connectTls({ ...target, ca: authority.certificate });
    socket.write('GET /federations/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    let text = '';
    socket.on('data', (chunk) => (text += chunk));
    await once(socket, 'close');
    expect(text).toMatch(/^HTTP\/1.1 200/);
    for (const each of held) each.destroy();
  });
});
