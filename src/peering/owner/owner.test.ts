import type { CallHandlers, ServerCall } from '../../base/grpc/server-options.ts';
// Limits on the memory and writes that a consumer's answers can cause at its owner.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { fromBinary } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { codes } from '../../base/grpc/status.ts';
import { type Log, silentLog } from '../../base/log.ts';
import { BidirectionalStreamSchema } from '../../gen/federation/resourcediscovery/v1alpha2/discovery_pb.js';
import type { Service } from '../../kube/objects/service.ts';
import type { PeerExport } from '../kinds/peer-export.ts';
import { exportStatus, ownerStatus } from '../status/peer-status.ts';
import { v1alpha1, v1alpha2 } from '../transport/wire.ts';
import type { PeerCaller } from '../trust/trust.ts';
import { type ConsumerReport, Owner } from './owner.ts';
import { OwnerCatalog } from './owner-catalog.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const peerExport = {
  metadata: { name: 'all', namespace: 'shop', generation: 1, uid: 'u' },
  spec: { serviceSelector: {}, peers: ['acme'] },
} as unknown as PeerExport;

function start(services: number) {
  const time = { nowMs: 1000 };
  const timers: { delayMs: number; run: () => void }[] = [];
  const lines: string[] = [];
  const log: Log = { ...silentLog, warn: (text, fields) => void lines.push(`${text} ${JSON.stringify(fields)}`) };
  const catalog = new OwnerCatalog({
    mesh: { trustDomain: 'x.example', domain: 'x.example', ingress: [{ address: '192.0.2.1', port: 1 }] },
    onChanged: (peer, id) => owner.changed(peer, id),
  });
  const owner: Owner = new Owner({
    clock: { wallMs: () => time.nowMs, monotonicMs: () => time.nowMs },
    timers: {
      after: (delayMs, run) => {
        const timer = { delayMs, run };
        timers.push(timer);
        return { cancel: () => void timers.splice(timers.indexOf(timer), 1) };
      },
    },
    random: { float: () => 0.5, bytes: (count) => new Uint8Array(count), uuid: () => '' },
    log,
    catalog,
    peer: (name) => ({ name, epoch: 'e', window: 100_000, versions: ['v1alpha1', 'v1alpha2'] }),
    hasSynced: () => true,
    revision: () => 1,
  });
  catalog.setExport('shop', 'all', peerExport);
  const put = (name: string, isThere = true) => {
    const metadata = { name, namespace: 'shop' };
    const service = { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } } as Service;
    catalog.setService('shop', name, isThere ? service : undefined);
  };
  for (let n = 0; n < services; n += 1) put(`s${n}`);
  const nonces: string[] = [];
  const ends: string[] = [];
  const call: ServerCall<PeerCaller> = {
    ...{ path: v1alpha1.path, headers: {}, caller: { peer: 'acme', identity: 'spiffe://acme.example' } },
    sendHeaders: () => {},
    ...{ unsentBytes: 0, pause() {}, resume() {} },
    send: (bytes) => {
      nonces.push(v1alpha1.decodeOwnerMessage(Buffer.from(bytes))?.nonce ?? '');
      return true;
    },
    end: (_code, reason) => void ends.push(reason),
  };
  const stream = owner.accept(call) as CallHandlers;
  const { resourceUrl } = v1alpha1;
  const say = (message: Parameters<typeof v1alpha1.encodeConsumerMessage>[0]) =>
    stream.onMessage(Buffer.from(v1alpha1.encodeConsumerMessage(message)));
  const refuseAll = (reason: () => string, code: number = codes.invalidArgument) => {
    for (const nonce of nonces.splice(0)) say({ kind: 'nack', nonce, resourceUrl, code, reason: reason() });
  };
  const acceptAll = () => {
    for (const nonce of nonces.splice(0)) say({ kind: 'ack', nonce, resourceUrl });
  };
  say({ kind: 'subscribe', resourceUrl });
  const report = () => owner.report('acme') as ConsumerReport;
  return { owner, catalog, lines, put, refuseAll, acceptAll, nonces, timers, stream, report, call, ends, time };
}

test('owner: a consumer refuses 1,500 services with 60 KB of reasons each -> memory, log and status stay small', () => {
  const { catalog, lines, refuseAll, report } = start(1500);
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  let n = 0;
  refuseAll(() => `${n++} ${'x'.repeat(60_000)}`);
  collectGarbage();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
  expect(report().refusals.size).toBe(1500);
  expect(lines.length).toBeLessThanOrEqual(20);
  expect(lines.join('').length).toBeLessThan(100_000);
  const findings = {
    ...{ peerExport, shares: catalog.sharesOf('shop/all'), report, offered: () => undefined },
    ...{ isKnown: () => true, isServedElsewhere: () => false, ingressProblem: '' },
  };
  const [atPeer] = exportStatus(findings).peers ?? [];
  expect(atPeer).toMatchObject({ state: 'Refused', message: expect.stringContaining('and 1490 more') });
  expect(atPeer?.message?.length).toBeLessThan(32_768);
  expect(ownerStatus(report(), 1500, 0)).toMatchObject({
    state: 'Refused',
    message: 'the peer refused 1500 of 1500 services',
  });
  expect(JSON.stringify(ownerStatus(report(), 1500, 0)).length).toBeLessThan(50_000);
});

test('owner: a consumer cannot take services for now (Unavailable) -> offered again with a growing delay, until it takes them [000-43]', () => {
  const { refuseAll, acceptAll, nonces, timers, report } = start(2);
  const delays: number[] = [];
  for (let n = 0; n < 3; n += 1) {
    refuseAll(() => 'no disk', codes.unavailable);
    expect([nonces.length, timers.length, report().refusals.size]).toEqual([0, 1, 2]);
    const [timer] = timers.splice(0);
    delays.push(timer!.delayMs);
    timer!.run();
    expect(nonces).toHaveLength(2);
  }
  expect(delays[0]).toBeGreaterThanOrEqual(1000);
  expect(delays).toEqual([...delays].sort((a, b) => a - b));
  acceptAll();
  expect([timers.length, report().refusals.size]).toEqual([0, 0]);
});

test('owner: services refused for good, or the consumer leaves -> nothing is offered again by itself', () => {
  const { refuseAll, timers, stream, put, nonces } = start(2);
  refuseAll(() => 'bad');
  expect(timers).toEqual([]);
  put('more');
  return Promise.resolve().then(() => {
    expect(nonces).toHaveLength(1);
    refuseAll(() => 'no disk', codes.unavailable);
    stream.onClosed();
    expect(timers).toEqual([]);
  });
});

test('owner: a consumer names a context with its subscription -> it comes back with every message', () => {
  const { owner, call } = start(2);
  const contexts: (string | undefined)[] = [];
  const send = (bytes: Uint8Array) => {
    contexts.push(fromBinary(BidirectionalStreamSchema, bytes).response?.context);
    return true;
  };
  const stream = owner.accept({ ...call, path: v1alpha2.path, send }) as CallHandlers;
  const subscribe = { kind: 'subscribe', resourceUrl: v1alpha2.resourceUrl } as const;
  stream.onMessage(Buffer.from(v1alpha2.encodeConsumerMessage(subscribe, 'blue')));
  expect(contexts).toEqual(['blue', 'blue']);
});

test('owner: a peer opens streams in a loop -> twenty at once, then one in a second; the others are refused', () => {
  const { owner, call, ends, time } = start(1);
  const refusedOf = (streams: number) => {
    ends.length = 0;
    for (let n = 0; n < streams; n += 1) owner.accept(call);
    return ends.filter((reason) => reason.includes('opens streams faster')).length;
  };
  // One is open already.
  expect(refusedOf(100)).toBe(81);
  time.nowMs += 5_000;
  expect(refusedOf(10)).toBe(5);
});

test('owner: a consumer refuses that services are gone, again and again -> nothing is kept of them', async () => {
  const { put, refuseAll, report } = start(10);
  refuseAll(() => 'no');
  for (let n = 0; n < 10; n += 1) put(`s${n}`, false);
  await Promise.resolve();
  refuseAll(() => 'no');
  expect(report().refusals.size).toBe(0);
});
