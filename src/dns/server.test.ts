// The sockets: UDP, TCP, DoT, IPv4 and IPv6, in this thread and in workers.

import { createSocket } from 'node:dgram';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Worker } from 'node:worker_threads';
import packet from 'dns-packet';
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { createRealWorld } from '../base/real/world.ts';
import { FederationTable } from '../catalog/federation/federation-table.ts';
import { readCounters } from './metrics/observe.ts';
import { type DnsOptions, type DnsServer, startDns } from './server.ts';
import { addImport, describeAnswer, encodeQuestion, makeCatalog, makeSlice, syncAll } from './testing/ask.ts';
import { makeAuthority } from './testing/edge/certs.ts';
import { askTcp, askUdp, askUdpRaw, framed, readFrames } from './testing/edge/client.ts';
import { keyOfPeerService, makePeers, peerService } from './testing/peer-names.ts';

const name = 'checkout.shop.svc.clusterset.local';
const running: DnsServer[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close()));
});

function sampleCatalog() {
  const catalog = makeCatalog();
  addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'], ports: ['http:80'] });
  const endpoints = Array.from({ length: 200 }, (_, i) => `10.1.0.${i}`);
  addImport(catalog, 'shop/many', { type: 'Headless', slices: [{ cluster: 'east', endpoints }] });
  syncAll(catalog);
  return catalog;
}

/** A server of another clusterset, so that names of the first are forwarded. */
function elsewhere() {
  const catalog = makeCatalog({ clustersetDomain: 'other.test' });
  syncAll(catalog);
  return catalog;
}

async function start(options: Partial<DnsOptions> = {}) {
  const catalog = options.catalog ?? sampleCatalog();
  const listen = { hosts: ['127.0.0.1'], port: 0, ...options.listen };
  const server = await startDns({ world: createRealWorld(), log: silentLog, ...options, catalog, listen });
  running.push(server);
  return { server, catalog, target: { host: '127.0.0.1', port: server.udpPort } };
}

describe('dns server', () => {
  test('UDP and TCP on one port, IPv4 and IPv6 -> the same answer', async () => {
    const { server } = await start({ listen: { hosts: ['127.0.0.1', '::1'], port: 0 } });
    for (const host of ['127.0.0.1', '::1']) {
      expect(await askUdp({ host, port: server.udpPort }, `${name} A`)).toBe('243.0.0.7');
      expect(await askTcp({ host, port: server.tcpPort }, `${name} A`)).toBe('243.0.0.7');
    }
  });

  test('truncated over UDP -> whole over TCP', async () => {
    const { target } = await start();
    expect(await askUdp(target, 'many.shop.svc.clusterset.local A')).toBe('TRUNCATED');
    expect((await askTcp(target, 'many.shop.svc.clusterset.local A')).split(', ')).toHaveLength(200);
  });

  test('several ports -> each answers, over UDP and TCP', async () => {
    for (const workers of [0, 2]) {
      const others = [{ host: '127.0.0.1', port: 0 }];
      const { server } = await start({ workers, listen: { hosts: ['127.0.0.1'], port: 0, others } });
      const [one, two] = server.addresses;
      expect(one!.port).not.toBe(two!.port);
      for (const target of [one!, two!]) {
        expect(await askUdp(target, `${name} A`)).toBe('243.0.0.7');
        expect(await askTcp(target, `${name} A`)).toBe('243.0.0.7');
      }
    }
  });

  test.each([0, 2])(
    '%d workers: closed while queries wait for a nameserver -> they are answered first',
    async (workers) => {
      const upstream = createSocket('udp4');
      /** Answers that wait, by name: a question may come again. */
      const held = new Map<string, () => void>();
      upstream.on('message', (question, from) => {
        const { id, questions } = packet.decode(question);
        const answers = [{ type: 'A', name: questions![0]!.name, ttl: 5, data: '203.0.113.1' }] as never;
        const reply = packet.encode({ type: 'response', id, questions, answers });
        held.set(questions![0]!.name, () => upstream.send(reply, from.port, from.address));
      });
      upstream.bind(0, '127.0.0.1');
      await once(upstream, 'listening');
      const forward = { nameservers: [`127.0.0.1:${upstream.address().port}`] };
      const { server, target } = await start({ workers, forward });
      const asked = [askUdp(target, 'udp.example.com A'), askTcp(target, 'tcp.example.com A')];
      // Seen there, both surely wait here.
      await expect
        .poll(() => [...held.keys()].sort(), { timeout: 15_000 })
        .toEqual(['tcp.example.com', 'udp.example.com']);
      const closed = server.close({ drainMs: 5000 });
      await new Promise((resolve) => setTimeout(resolve, 100));
      for (const answer of held.values()) answer();
      expect(await Promise.all(asked)).toEqual(['203.0.113.1', '203.0.113.1']);
      await closed;
      upstream.close();
    },
  );

  test('how many queries may wait is set -> one more is refused at once, and cluster names are answered', async () => {
    const upstream = createSocket('udp4');
    upstream.bind(0, '127.0.0.1');
    await once(upstream, 'listening');
    const forward = { nameservers: [`127.0.0.1:${upstream.address().port}`] };
    const forwardTimes = { totalMs: 60_000, silentMs: 60_000 };
    const { target } = await start({ forward, forwardTimes, waitingMax: 8 });
    const socket = connect(target);
    // One client may take seven of eight places.
    const reading = readFrames(socket, 4);
    for (let i = 0; i < 10; i++) socket.write(framed(encodeQuestion(`slow-${i}.example.com A`)));
    socket.write(framed(encodeQuestion(`${name} A`)));
    const answers = (await reading).map((answer) => `${answer.questions![0]!.name} ${describeAnswer(answer)}`);
    expect(answers).toEqual([...['7', '8', '9'].map((i) => `slow-${i}.example.com SERVFAIL`), `${name} 243.0.0.7`]);
    socket.destroy();
    upstream.close();
  });

  test('garbage over UDP -> silence, and the next query is served', async () => {
    const { target } = await start();
    await expect(
      Promise.race([
        askUdpRaw(target, Buffer.from('hello')),
        new Promise((resolve) => setTimeout(resolve, 100, 'silence')),
      ]),
    ).resolves.toBe('silence');
    expect(await askUdp(target, `${name} A`)).toBe('243.0.0.7');
  });

  test('fifty queries at once on one TCP connection, cut at odd places -> fifty answers (RFC 7766)', async () => {
    const { target } = await start();
    const socket = connect(target);
    const reading = readFrames(socket, 50);
    const all = Buffer.concat(Array.from({ length: 50 }, () => framed(encodeQuestion(`${name} A`))));
    for (let at = 0; at < all.length; at += 7) socket.write(all.subarray(at, at + 7));
    const answers = await reading;
    expect(new Set(answers.map(describeAnswer))).toEqual(new Set(['243.0.0.7']));
    socket.destroy();
  });

  test('a TCP connection that is idle, or never completes a query -> closed', async () => {
    const { target } = await start({ listen: { hosts: ['127.0.0.1'], port: 0, tcpIdleMs: 50 } });
    const idle = connect(target);
    await once(idle, 'close');
    const slow = connect(target);
    slow.on('error', () => {});
    slow.write(Buffer.from([1, 0]));
    const dripping = setInterval(() => slow.write(Buffer.from([0])), 10);
    await new Promise((resolve) => slow.on('close', resolve));
    clearInterval(dripping);
  });

  test('too many TCP connections -> the one idle longest goes, new ones are served', async () => {
    const { target } = await start({ listen: { hosts: ['127.0.0.1'], port: 0, tcpConnectionsMax: 2 } });
    const first = connect(target);
    await once(first, 'connect');
    const second = connect(target);
    await once(second, 'connect');
    const closed = once(first, 'close');
    expect(await askTcp(target, `${name} A`)).toBe('243.0.0.7');
    await closed;
    second.destroy();
  });

  test('nameservers over TLS -> asked there; a certificate for another name -> SERVFAIL', async () => {
    const authority = makeAuthority('test authority');
    const material = authority.issue('dns', { kind: 'server', hosts: ['dns.example'] });
    const { server: upstream } = await start({ listen: { hosts: ['127.0.0.1'], port: 0, tls: { port: 0, material } } });
    const ask = async (server: string) => {
      const nameservers = [`tls://127.0.0.1:${upstream.tlsPort}#${server}`];
      const forward = { nameservers, tls: { authority: authority.certificate } };
      const { target } = await start({ catalog: elsewhere(), forward });
      return askUdp(target, `${name} A`);
    };
    expect(await ask('dns.example')).toBe('243.0.0.7');
    expect(await ask('other.example')).toBe('SERVFAIL');
  });

  test('DoT -> answered; without TLS on that port -> nothing', async () => {
    const authority = makeAuthority('test authority');
    const material = authority.issue('dns', { kind: 'server', hosts: ['127.0.0.1'] });
    const { server } = await start({ listen: { hosts: ['127.0.0.1'], port: 0, tls: { port: 0, material } } });
    const target = { host: '127.0.0.1', port: server.tlsPort! };
    const socket = connectTls({ ...target, ca: authority.certificate, ALPNProtocols: ['dot'] });
    await once(socket, 'secureConnect');
    expect(socket.alpnProtocol).toBe('dot');
    const reading = readFrames(socket, 1);
    socket.write(framed(encodeQuestion(`${name} A`)));
    expect(describeAnswer((await reading)[0]!)).toBe('243.0.0.7');
    socket.destroy();
    const plain = connect(target);
    plain.on('error', () => {});
    plain.write(framed(encodeQuestion(`${name} A`)));
    await new Promise((resolve) => plain.on('close', resolve));
  });

  test.each([0, 2])(
    'DoT with %d workers, the certificate is renewed -> new connections get the new one',
    async (workers) => {
      const authority = makeAuthority('test authority');
      const issue = (host: string) => authority.issue(host, { kind: 'server', hosts: [host, '127.0.0.1'] });
      const tls = { port: 0, material: issue('first') };
      const { server } = await start({ workers, listen: { hosts: ['127.0.0.1'], port: 0, tls } });
      const shown = async () => {
        const socket = connectTls({ host: '127.0.0.1', port: server.tlsPort!, ca: authority.certificate });
        await once(socket, 'secureConnect');
        const { subject } = socket.getPeerCertificate();
        socket.destroy();
        return subject.CN;
      };
      expect(await shown()).toBe('first');
      server.setTls(issue('second'));
      // Threads learn of it by a message.
      await expect
        .poll(async () => [await shown(), await shown(), await shown()])
        .toEqual(['second', 'second', 'second']);
    },
  );

  test.each([
    [0, 0],
    [2, 0],
    [0, 2],
    [2, 2],
  ])(
    'a port that is taken by a server with %d workers, asked for by one with %d -> an error with its code',
    async (holding, asking) => {
      const { server, target } = await start({ workers: holding });
      const listen = { hosts: ['127.0.0.1'], port: server.udpPort };
      await expect(start({ workers: asking, listen })).rejects.toMatchObject({ code: 'EADDRINUSE' });
      expect(await askUdp(target, `${name} A`)).toBe('243.0.0.7');
      await server.close();
      const { target: again } = await start({ workers: asking, listen });
      expect(await askUdp(again, `${name} A`)).toBe('243.0.0.7');
    },
  );
});

describe('dns server with workers', () => {
  test('a thread dies -> the other goes on, and one that replaces it knows what changed and counts on', async () => {
    const started: { worker: Worker; listens: Promise<unknown> }[] = [];
    const onStart = (message: unknown) => {
      const { worker } = message as { worker: Worker };
      started.push({ worker, listens: once(worker, 'message') });
    };
    subscribe('worker_threads', onStart);
    const { server, catalog, target } = await start({ workers: 2 });
    // A new generation of memory, sent only to living threads.
    for (let i = 0; i < 3000; i++) addImport(catalog, `shop/extra-${i}`, { ips: [`243.1.${i >> 8}.${i & 255}`] });
    catalog.flush();
    await askUdp(target, `${name} A`);
    await started[0]!.worker.terminate();
    addImport(catalog, 'shop/checkout', { ips: ['243.0.0.8'] });
    catalog.flush();
    for (let i = 0; i < 10; i++) expect(await askUdp(target, `${name} A`)).toBe('243.0.0.8');
    await expect.poll(() => started.length, { timeout: 5000 }).toBe(3);
    await started[2]!.listens;
    await started[1]!.worker.terminate();
    // Only the new one is left.
    expect(await askUdp(target, `${name} A`)).toBe('243.0.0.8');
    expect(await askUdp(target, 'extra-2999.shop.svc.clusterset.local A')).toBe('243.1.11.183');
    const { byZoneAndRcode } = readCounters(server.counters());
    expect(byZoneAndRcode.map(({ count }) => count)).toEqual([13]);
    expect(server.workerRestarts()).toBeGreaterThan(0);
    unsubscribe('worker_threads', onStart);
  });

  test('a service of a peer comes and goes -> both threads answer at its FQDN, then neither', async () => {
    const catalog = sampleCatalog();
    const peerTable = makePeers(catalog);
    peerTable.setSynced();
    const { target } = await start({ workers: 2, catalog, peerTable });
    const answers = async () => {
      const asked = await Promise.all(Array.from({ length: 20 }, () => askUdp(target, 'db.east.example A')));
      return [...new Set(asked)];
    };
    expect(await answers()).toEqual(['REFUSED']);
    peerTable.upsert(peerService());
    expect(await answers()).toEqual(['241.0.0.1']);
    peerTable.remove(keyOfPeerService(peerService()));
    expect(await answers()).toEqual(['REFUSED']);
  });

  test('two workers on one port -> both answer, and see changes and new generations of the catalog', async () => {
    const { catalog, target } = await start({ workers: 2 });
    const askMany = async (question: string) => {
      // Each question leaves from another port, so that the kernel spreads them over both threads.
      const answers = await Promise.all(Array.from({ length: 20 }, () => askUdp(target, question)));
      return [...new Set(answers)];
    };
    expect(await askMany(`${name} A`)).toEqual(['243.0.0.7']);
    expect(await askTcp(target, `${name} A`)).toBe('243.0.0.7');
    for (let i = 0; i < 3000; i++) addImport(catalog, `shop/extra-${i}`, { ips: [`243.1.${i >> 8}.${i & 255}`] });
    addImport(catalog, 'shop/checkout', { ips: ['243.0.0.8'] });
    catalog.facts.upsertEndpointSlice(makeSlice('shop/many', { cluster: 'east', endpoints: ['10.9.9.9'] }));
    catalog.flush();
    // A new generation reaches the threads as a message.
    await expect.poll(() => askMany('extra-2999.shop.svc.clusterset.local A')).toEqual(['243.1.11.183']);
    expect(await askMany(`${name} A`)).toEqual(['243.0.0.8']);
    expect(await askMany('many.shop.svc.clusterset.local A')).toEqual(['10.9.9.9']);
  });

  test.each([0, 2])(
    '%d workers: a federation moves to another suffix -> answered there, refused here',
    async (workers) => {
      const catalog = sampleCatalog();
      const federation = new FederationTable({ table: catalog.table });
      federation.putText('/fed/shop/web/a1', '{"externalIP": "104.0.0.1", "clusterIP": "10.0.0.1"}');
      federation.setSynced();
      const { server, target } = await start({ workers, catalog, federations: [federation] });
      const askMany = async (question: string) =>
        [...new Set(await Promise.all(Array.from({ length: 20 }, () => askUdp(target, question))))].join();
      expect(await askMany('web.shop.fed.svc.federation A')).toBe('104.0.0.1');
      federation.setZone({ suffix: 'example.org' });
      server.changeZones({ federationZones: [federation.zone] });
      await expect.poll(() => askMany('web.shop.fed.svc.example.org A')).toBe('104.0.0.1');
      expect(await askMany('web.shop.fed.svc.federation A')).toBe('REFUSED');
      expect(await server.explain({ name: 'web.shop.fed.svc.example.org' })).toMatchObject({ handler: 'authority' });
    },
  );
});
