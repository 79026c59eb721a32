// The link on its own: its states by the names of seed 000, Appendix A, and what it does to an owner that misbehaves.

import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { SimHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { codes } from '../../base/grpc/status.ts';
import type { ClientHandlers, DialOptions } from '../../base/grpc/transport-client.ts';
import { silentLog } from '../../base/log.ts';
import { issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import type { LinkLimits } from '../rules/link-config.ts';
import { serviceOf } from '../testing/services.ts';
import { v1alpha1, v1alpha2 } from '../transport/wire.ts';
import { ConsumerLink } from './consumer-link.ts';
import { PeerServiceStore } from './peer-service-store.ts';

async function start(
  limits: Partial<LinkLimits> = {},
  versions: ('v1alpha1' | 'v1alpha2')[] = ['v1alpha1'],
  retentionMs = 0,
) {
  const simulation = new Simulation({ seed: 1 });
  const home = new SimHome({ simulation, name: 'home', serviceRanges: ['10.96.0.0/16'], mayDo: () => true });
  await simulation.time.settle(home.start());
  const world = simulation.world('link');
  const store = new PeerServiceStore({
    client: home.admin,
    world,
    log: silentLog,
    namespace: 'default',
    peer: 'owner',
  });
  const dialed: { options: DialOptions; handlers: ClientHandlers }[] = [];
  const log: string[] = [];
  const warnings: string[] = [];
  const sent: Buffer[] = [];
  const state = {
    unsentBytes: 0,
    own: { certificate: 'c', key: 'k' },
    presented: [] as X509Certificate[],
    roots: [] as string[],
  };
  const link = new ConsumerLink({
    ...{ world, peer: 'owner', store, limits },
    log: { ...silentLog, warn: (text) => void warnings.push(text) },
    config: {
      address: 'https://owner.example:8008',
      context: 'blue',
      versions,
      get roots() {
        return state.roots;
      },
      isExpected: () => true,
      bounds: { allowedDomains: ['*'], ownZones: [] },
      accepts: () => true,
      quietMs: 3000,
      graceMs: 60_000,
      retentionMs,
      bytesMax: 1e9,
      servicesMax: 1000,
    },
    credentials: () => state.own,
    dial: (options, handlers) => {
      dialed.push({ options, handlers });
      return {
        probe: () => void log.push('probe'),
        send: (bytes) => {
          sent.push(Buffer.from(bytes));
          log.push(v1alpha1.decodeConsumerMessage(Buffer.from(bytes))?.kind ?? '?');
        },
        get unsentBytes() {
          return state.unsentBytes;
        },
        pause: () => log.push('pause'),
        resume: () => log.push('resume'),
        presented: () => state.presented,
        cancel: (code = codes.cancelled, reason = '') => handlers.onClosed(code, reason),
      };
    },
    onChanged: () => states.push(link.state.kind),
  });
  const states: string[] = [];
  link.start();
  const message = (id: string, nonce = id) =>
    Buffer.from(v1alpha1.encodeOwnerMessage({ kind: 'create', nonce, offer: v1alpha1.encodeOffer(serviceOf(id)) }));
  const last = () => dialed[dialed.length - 1]!;
  return { time: simulation.time, link, log, states, dialed, last, message, state, store, warnings, sent };
}

test('link: one conversation -> dialing (1), registering (2), updating (4), receiving (3), waiting (5)', async () => {
  const { time, link, states, last, message, log } = await start();
  expect(link.state.kind).toBe('dialing');
  expect(log).toEqual(['subscribe']);
  last().handlers.onOpened({});
  expect(link.state.kind).toBe('registering');
  last().handlers.onMessage(message('a'));
  expect(link.state.kind).toBe('updating');
  await time.advance(500);
  expect(link.state.kind).toBe('receiving');
  expect(log).toEqual(['subscribe', 'ack']);
  last().handlers.onAlive();
  await time.advance(10_000);
  last().handlers.onAlive();
  await time.advance(2000);
  expect(states.at(-1)).toBe('waiting');
});

test('link: its Peer names a context -> sent with the subscription, in the later draft', async () => {
  const { sent } = await start({}, ['v1alpha2']);
  expect(sent.map((bytes) => v1alpha2.decodeConsumerMessage(bytes))).toMatchObject([
    { kind: 'subscribe', context: 'blue' },
  ]);
});

test('link: the owner is Unavailable -> backing off (6) from 1 s, growing; then dialing (1) again', async () => {
  const { time, link, last, dialed } = await start();
  const delays: number[] = [];
  for (let n = 0; n < 5; n += 1) {
    last().handlers.onClosed(codes.unavailable, 'not now');
    expect(link.state).toMatchObject({ kind: 'backingOff', reason: 'not now' });
    const before = time.nowMs;
    const count = dialed.length;
    await time.until(() => dialed.length > count, { withinMs: 120_000 });
    delays.push(time.nowMs - before);
    expect(link.state.kind).toBe('dialing');
  }
  expect(delays[0]).toBeGreaterThanOrEqual(1000);
  expect(delays[0]).toBeLessThanOrEqual(2000);
  expect(delays[4]).toBeGreaterThan(8000);
});

test.each([
  ['Unauthenticated', codes.unauthenticated],
  ['InvalidArgument', codes.invalidArgument],
])('link: %s -> stopped (7), not retried however long; retried when asked', async (_name, code) => {
  const { time, link, last, dialed } = await start();
  last().handlers.onClosed(code, 'no');
  expect(link.state).toEqual({ kind: 'stopped', code, reason: 'no' });
  await time.advance(24 * 3_600_000);
  expect(dialed).toHaveLength(1);
  link.retry();
  expect(dialed).toHaveLength(2);
});

test('link: Unimplemented -> the next version at once; none left -> stopped', async () => {
  const { link, last, dialed } = await start({}, ['v1alpha1', 'v1alpha2']);
  last().handlers.onClosed(codes.unimplemented, '');
  expect(dialed.map(({ options }) => options.path)).toEqual([v1alpha1.path, v1alpha2.path]);
  last().handlers.onClosed(codes.unimplemented, '');
  expect(link.state.kind).toBe('stopped');
});

test('link: bytes that are no message (data transmission error) -> stopped (9) with InvalidArgument', async () => {
  const { link, last } = await start();
  last().handlers.onOpened({});
  last().handlers.onMessage(Buffer.from([0xff, 0xff, 0xff]));
  expect(link.state).toMatchObject({ kind: 'stopped', code: codes.invalidArgument });
});

test('link: an owner sends faster than the disk takes -> reading pauses and goes on, nothing is lost', async () => {
  const { time, link, last, message, log } = await start({ pendingPause: 4 });
  last().handlers.onOpened({});
  for (let n = 0; n < 10; n += 1) last().handlers.onMessage(message(`s${n}`));
  expect(log.filter((entry) => entry === 'pause')).toHaveLength(1);
  await time.advance(1000);
  expect(log.filter((entry) => entry === 'resume')).toHaveLength(1);
  expect(log.filter((entry) => entry === 'ack')).toHaveLength(10);
  expect(link.report().services).toBe(10);
});

test('link: an owner sends large services faster than the disk takes -> reading pauses by their bytes', async () => {
  const { time, last, log } = await start({ pendingBytesPause: 100_000 });
  last().handlers.onOpened({});
  const description = 'x'.repeat(4000);
  for (let n = 0; n < 30; n += 1) {
    const offer = v1alpha1.encodeOffer(serviceOf(`s${n}`, { description }));
    last().handlers.onMessage(Buffer.from(v1alpha1.encodeOwnerMessage({ kind: 'create', nonce: `${n}`, offer })));
  }
  expect(log.filter((entry) => entry === 'pause')).toHaveLength(1);
  await time.advance(1000);
  expect(log.filter((entry) => entry === 'resume')).toHaveLength(1);
  expect(log.filter((entry) => entry === 'ack')).toHaveLength(30);
});

test('link: an owner that allows few pings cuts us off -> asked less often, in two steps; removed services go all the same', async () => {
  const { time, last, dialed, message, store, link } = await start();
  const cutOff = async () => {
    const count = dialed.length;
    last().handlers.onClosed(codes.unavailable, 'too many pings', 'tooManyPings');
    await time.until(() => dialed.length > count, { withinMs: 120_000 });
  };
  const live = async (seconds: number) => {
    for (let n = 0; n < seconds; n += 1) {
      last().handlers.onAlive();
      await time.advance(1000);
    }
  };
  const say = (...ids: string[]) => {
    last().handlers.onOpened({});
    for (const id of ids) last().handlers.onMessage(message(id));
  };
  say('a', 'gone');
  await live(40);
  await cutOff();
  for (const seconds of [25, 20]) {
    say('a');
    await live(seconds);
    expect(link.report().suspects).toBe(1);
    expect(store.get('gone')?.status.state).toBe('Suspect');
    await cutOff();
  }
  say('a');
  await live(30);
  expect(store.get('gone')).toBeUndefined();
  expect(link.report().suspects).toBe(0);
  expect(dialed.map(({ options }) => options.keepAliveMs)).toEqual([10_000, 45_000, 310_000, 620_000]);
});

test('link: an owner that is rarely pinged has said everything -> pinged once besides, and its catalog is complete', async () => {
  const { time, last, log, message, link } = await start();
  last().handlers.onOpened({});
  last().handlers.onAlive();
  last().handlers.onMessage(message('a'));
  await time.advance(20_000);
  expect([log.filter((kind) => kind === 'probe'), link.report().fullSyncMs]).toEqual([['probe'], undefined]);
  last().handlers.onAlive();
  await time.advance(2_000);
  expect([link.state.kind, link.report().fullSyncMs]).toEqual(['waiting', expect.any(Number)]);
});

test('link: an owner floods us and does not read our answers -> InvalidArgument, stopped', async () => {
  const { time, link, last, message, state } = await start();
  last().handlers.onOpened({});
  state.unsentBytes = 100 * 1024 * 1024;
  last().handlers.onMessage(message('a'));
  await time.advance(1000);
  expect(link.state).toMatchObject({ kind: 'stopped', code: codes.invalidArgument });
  expect((link.state as { reason: string }).reason).toContain('floods');
});

test('link: an owner that sends headers only with its first message -> its silence is the end of its catalog all the same', async () => {
  const { time, link, last, message } = await start();
  last().handlers.onAlive();
  await time.advance(10_000);
  last().handlers.onAlive();
  await time.advance(5000);
  expect(link.state.kind).toBe('waiting');
  expect(link.report()).toMatchObject({ mode: 'quiescence', fullSyncMs: expect.any(Number) });
  last().handlers.onOpened({});
  last().handlers.onMessage(message('a'));
  await time.advance(1000);
  expect(link.report()).toMatchObject({ services: 1, unacknowledged: 0 });
});

test('link: headers of one of ours that come late, after its silence was taken for the end -> the stream starts over', async () => {
  const { time, link, last } = await start();
  last().handlers.onAlive();
  await time.advance(10_000);
  last().handlers.onAlive();
  await time.advance(5000);
  last().handlers.onOpened({ 'portolan-snapshot': '1' });
  expect(link.state.kind).toBe('backingOff');
});

test('link: while it dials -> nobody knows yet how deletions will be told', async () => {
  const { link, last } = await start();
  expect(link.report().mode).toBeUndefined();
  last().handlers.onOpened({ 'portolan-snapshot': '1' });
  expect(link.report().mode).toBe('exact');
});

test('link: a retry is asked for while a stream is open -> a new one', async () => {
  const { link, last, dialed } = await start();
  last().handlers.onOpened({});
  link.retry();
  expect(dialed).toHaveLength(2);
  expect(link.state.kind).toBe('dialing');
});

test('link: roots or certificates change while a stream is open -> it goes on; had it stopped -> tried again', async () => {
  const { link, last, dialed } = await start();
  last().handlers.onOpened({});
  link.trustChanged();
  expect(dialed).toHaveLength(1);
  last().handlers.onClosed(codes.unauthenticated, 'no');
  link.trustChanged();
  expect(dialed).toHaveLength(2);
});

test('link: Unauthenticated for a certificate that was replaced meanwhile -> tried at once with the new one, and only once', async () => {
  const { link, last, dialed, state } = await start();
  last().handlers.onOpened({});
  state.own = { certificate: 'next', key: 'k' };
  last().handlers.onClosed(codes.unauthenticated, 'expired');
  expect(dialed.map(({ options }) => options.certificate)).toEqual(['c', 'next']);
  last().handlers.onClosed(codes.unauthenticated, 'no');
  expect(link.state.kind).toBe('stopped');
  expect(dialed).toHaveLength(2);
});

test('link: none of the versions of its Peer is switched on -> nothing is dialed, and it says so', async () => {
  const { link, dialed } = await start({}, []);
  expect(dialed).toEqual([]);
  expect(link.state).toMatchObject({ kind: 'stopped', reason: expect.stringContaining('versions') });
});

test('link: an owner that comes and goes -> retention runs from when it was last heard, for what came meanwhile too', async () => {
  const { time, link, last, message, store } = await start({}, ['v1alpha1'], 20_000);
  const states = () => Array.from(store.values(), ({ id, status }) => `${id} ${status.state ?? 'Active'}`);
  const visit = async (id: string) => {
    link.retry();
    last().handlers.onOpened({});
    last().handlers.onMessage(message(id));
    await time.advance(100);
    last().handlers.onClosed(codes.unavailable, 'going');
  };
  const away = async (seconds: number) => {
    for (let n = 0; n < seconds; n += 1) {
      await time.advance(1000);
      if (link.state.kind === 'dialing') last().handlers.onClosed(codes.unavailable, 'away');
    }
  };
  for (let n = 0; n < 10; n += 1) {
    await visit(`s${n % 2}`);
    await away(5);
    expect(states()).toHaveLength(Math.min(n + 1, 2));
  }
  await away(6);
  expect(states()).toEqual(['s0 Stale', 's1 Stale']);
  await visit('s2');
  expect(states()).toEqual(['s0 Stale', 's1 Stale', 's2 Active']);
  await away(12);
  expect(states()).toEqual(['s0 Stale', 's1 Stale', 's2 Stale']);
  await away(9);
  expect(states()).toEqual([]);
  await visit('s3');
  await away(21);
  expect(states()).toEqual([]);
});

/** A root and a certificate of it that expires after a minute of the virtual clock. */
function briefChain(): { root: string; leaf: X509Certificate } {
  const startMs = Date.UTC(2026, 0, 1);
  const times = { notBeforeMs: startMs - 60_000, serial: Buffer.alloc(16, 7) };
  const issuer = { subject: { commonName: 'mesh owner.example' }, key: generatePrivateKey() };
  const authority = { ...issuer, use: { kind: 'authority' as const }, ...times, notAfterMs: startMs + 3_600_000 };
  const uris = ['spiffe://owner.example/mesh'];
  const leaf = issueCertificate({
    ...{ subject: { commonName: 'peering' }, key: generatePrivateKey(), issuer, use: { kind: 'identity', uris } },
    ...{ ...times, notAfterMs: startMs + 60_000 },
  });
  return { root: issueCertificate(authority), leaf: new X509Certificate(leaf) };
}

test('link: the certificate of the owner expires, or its roots are other ones -> the stream ends, and it is dialed again', async () => {
  const { root, leaf } = briefChain();
  for (const isExpiry of [true, false]) {
    const { time, link, last, state, dialed } = await start();
    Object.assign(state, { presented: [leaf], roots: [root] });
    last().handlers.onOpened({ 'portolan-snapshot': '1' });
    await time.advance(50_000);
    expect(link.state.kind).toBe('registering');
    if (isExpiry) await time.advance(20_000);
    else state.roots = [briefChain().root];
    if (!isExpiry) await time.advance(6000);
    expect(link.state.kind).toBe('dialing');
    expect(dialed).toHaveLength(2);
  }
});

test('link: the owner is back and names a service with bad content -> refused, but no longer stale; its last good form stays', async () => {
  const { time, last, message, dialed, store } = await start();
  last().handlers.onOpened({});
  last().handlers.onMessage(message('a'));
  await time.advance(500);
  last().handlers.onClosed(codes.unavailable, 'away');
  await time.advance(100);
  while (store.statusOf('a').state !== 'Stale') {
    const count = dialed.length;
    await time.until(() => dialed.length > count, { withinMs: 120_000 });
    last().handlers.onClosed(codes.unavailable, 'away');
  }
  const count = dialed.length;
  await time.until(() => dialed.length > count, { withinMs: 120_000 });
  last().handlers.onOpened({});
  const offer = v1alpha1.encodeOffer(serviceOf('a', { san: 'bad' }));
  last().handlers.onMessage(Buffer.from(v1alpha1.encodeOwnerMessage({ kind: 'update', nonce: 'n', offer })));
  await time.advance(500);
  expect(store.get('a')?.spec.fqdn).toBe('a.example.com');
  expect(store.get('a')?.status).toMatchObject({
    state: 'Active',
    conditions: [{ type: 'Accepted', status: 'False' }],
  });
});

test('link: an owner offers 1,500 services that are refused -> each is answered, twenty lines are logged', async () => {
  const { time, last, log, warnings } = await start();
  last().handlers.onOpened({});
  for (let n = 0; n < 1500; n += 1) {
    const offer = v1alpha1.encodeOffer(serviceOf(`s${n}`, { san: 'nonsense' }));
    last().handlers.onMessage(Buffer.from(v1alpha1.encodeOwnerMessage({ kind: 'create', nonce: `${n}`, offer })));
  }
  await time.advance(100);
  expect(log.filter((entry) => entry === 'nack')).toHaveLength(1500);
  expect(warnings.filter((text) => text === 'a service of this peer was refused')).toHaveLength(20);
});

test('link: a chain that TLS let in and we would not -> left to TLS, not dialed over and over', async () => {
  const { time, last, state, dialed } = await start();
  Object.assign(state, { presented: [briefChain().leaf], roots: [briefChain().root] });
  last().handlers.onOpened({ 'portolan-snapshot': '1' });
  await time.advance(120_000);
  expect(dialed).toHaveLength(1);
});
