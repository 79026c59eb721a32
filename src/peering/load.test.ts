// Much traffic under the virtual clock: a consumer that stalls among others, and a million messages both ways at once.
// `PORTOLAN_LOAD=1000000` runs the long one; it is short otherwise.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { VirtualTime } from '../../sim/virtual-time.ts';
import { silentLog } from '../base/log.ts';
import type { Service } from '../kube/objects/service.ts';
import type { PeerExport } from './kinds/peer-export.ts';
import { Owner } from './owner/owner.ts';
import { OwnerCatalog } from './owner/owner-catalog.ts';
import { ConsumerSession } from './session/consumer-session.ts';
import { TestDisk } from './testing/test-disk.ts';
import { VirtualPeering } from './testing/virtual-peering.ts';
import { type Draft, v1alpha1, v1alpha2 } from './transport/wire.ts';

class LoadOwner {
  readonly owner: Owner;
  readonly catalog: OwnerCatalog;
  readonly address: string;
  #revision = 0;

  constructor(time: VirtualTime, network: VirtualPeering, name: string, peers: readonly string[]) {
    this.address = `https://${name}:1`;
    this.catalog = new OwnerCatalog({
      mesh: { trustDomain: 'x.example', domain: 'x.example', ingress: [{ address: '192.0.2.1', port: 1 }] },
      onChanged: (peer, id) => this.owner.changed(peer, id),
    });
    this.owner = new Owner({
      clock: { wallMs: () => time.nowMs, monotonicMs: () => time.nowMs },
      timers: { after: () => ({ cancel() {} }) },
      random: { float: () => 0.5, bytes: (count) => new Uint8Array(count), uuid: () => '' },
      log: silentLog,
      catalog: this.catalog,
      peer: (peer) => ({ name: peer, epoch: 'e', window: 256, versions: ['v1alpha1', 'v1alpha2'] }),
      hasSynced: () => true,
      revision: () => this.#revision,
    });
    const metadata = { name: 'all', namespace: 'shop', generation: 1, uid: 'u' };
    const spec = { serviceSelector: {}, peers: [...peers] };
    this.catalog.setExport('shop', 'all', { apiVersion: '', kind: '', metadata, spec } as PeerExport);
    const judge = () => ({ kind: 'trusted' });
    void network.serve(this.address)({ judge, accept: (call: never) => this.owner.accept(call) } as never);
  }

  put(name: string, description: string): void {
    const annotations = { 'portolan.dev/description': description };
    this.#revision += 1;
    const metadata = { name, namespace: 'shop', annotations, resourceVersion: String(this.#revision) };
    const service = { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } } as Service;
    this.catalog.setService('shop', name, service);
  }
}

/** Keeps everything in memory; its disk takes a virtual millisecond. */
class LoadConsumer {
  readonly held = new Map<string, string>();
  /** `time id description` of everything that arrived. */
  readonly arrivals: string[] = [];
  messages = 0;
  readonly session: ConsumerSession;

  constructor(
    time: VirtualTime,
    network: VirtualPeering,
    name: string,
    address: string,
    options: { readonly draft: Draft; readonly isLogged?: boolean },
  ) {
    const { draft } = options;
    const disk = new TestDisk();
    const session = new ConsumerSession({
      resourceUrl: draft.resourceUrl,
      bounds: { allowedDomains: ['*'], ownZones: [] },
      accepts: () => true,
      held: disk,
      bytesMax: 1e9,
      pendingMax: 100_000,
      servicesMax: 1_000_000,
      silenceMsMin: 3000,
      graceMs: 60_000,
    });
    this.session = session;
    const act = (outputs: ReturnType<ConsumerSession['step']>) => {
      for (const output of outputs) {
        if (output.kind === 'send') call.send(draft.encodeConsumerMessage(output.message));
        if (output.kind !== 'store') continue;
        this.held.set(output.service.id, output.service.description);
        if (options.isLogged) this.arrivals.push(`${time.nowMs} ${output.service.id} ${output.service.description}`);
        disk.queue(output);
        if (tickets.push(output.ticket) > 1) continue;
        time.schedule(1, () => {
          for (const ticket of tickets.splice(0)) {
            disk.take(ticket);
            act(session.step({ kind: 'stored', nowMs: time.nowMs, ticket }));
          }
        });
      }
    };
    const tickets: number[] = [];
    const call = network.dial()(
      { address, path: draft.path, headers: { 'portolan-snapshot': '1' }, certificate: name } as never,
      {
        onOpened: () => act(session.step({ kind: 'opened', nowMs: time.nowMs, hasSnapshotEnd: true })),
        onMessage: (bytes) => {
          this.messages += 1;
          const message = draft.decodeOwnerMessage(bytes);
          if (message !== undefined) act(session.step({ kind: 'message', nowMs: time.nowMs, message }));
        },
        onOversized() {},
        onAlive() {},
        onClosed() {},
      },
    );
    call.send(draft.encodeConsumerMessage({ kind: 'subscribe', resourceUrl: draft.resourceUrl }));
  }
}

function networkOn(time: VirtualTime): VirtualPeering {
  return new VirtualPeering({ timers: { after: (ms, run) => time.schedule(ms, run) }, latencyMs: 5 });
}

/** Ten consumers, a burst of updates; the first one may stall, or break off in the middle. */
async function burst(first: 'is well' | 'stalls' | 'breaks off') {
  const isStalled = first === 'stalls';
  const time = new VirtualTime();
  const network = networkOn(time);
  const names = Array.from({ length: 10 }, (_, n) => `c${n}`);
  const owner = new LoadOwner(time, network, 'owner', names);
  for (let n = 0; n < 100; n += 1) owner.put(`s${n}`, 'x'.repeat(400));
  const consumers = names.map(
    (name) => new LoadConsumer(time, network, name, owner.address, { draft: v1alpha1, isLogged: true }),
  );
  await time.advance(1000);
  if (isStalled) network.stall('c0', true);
  for (let round = 0; round < 15; round += 1) {
    for (let n = 0; n < 100; n += 1) owner.put(`s${n}`, `${round} `.repeat(100));
    await time.advance(50);
    if (first === 'breaks off' && round === 7) network.vanish('https://c0:1', 'c0');
  }
  const stalledReport = owner.owner.report('c0');
  const stalledBytesMax = network.bytesMaxTo('c0');
  const lag = { services: stalledReport?.lag, unacknowledged: stalledReport?.unacknowledged };
  if (isStalled) network.stall('c0', false);
  await time.advance(2000);
  return { consumers, lag, stalledBytesMax };
}

test('load: one of ten consumers stalls -> the others’ deliveries are the same to the millisecond, its buffers bounded [000-10]', async () => {
  const calm = await burst('is well');
  const stalled = await burst('stalls');
  for (let n = 1; n < 10; n += 1) expect(stalled.consumers[n]?.arrivals).toEqual(calm.consumers[n]?.arrivals);
  expect(stalled.lag.services).toBe(100);
  expect(stalled.lag.unacknowledged).toBeLessThanOrEqual(256);
  // The buffer's contents, and one message for each service at most.
  expect(stalled.stalledBytesMax).toBeLessThan(64 * 1024 + 100 * 1000);
  // It missed nothing that still counts, and saw few of the states in between.
  expect(stalled.consumers[0]?.held).toEqual(calm.consumers[0]?.held);
  expect(stalled.consumers[0]!.messages).toBeLessThan(calm.consumers[0]!.messages / 4);
});

test('load: one of ten consumers breaks off in the middle -> the others’ deliveries are the same to the millisecond', async () => {
  const calm = await burst('is well');
  const broken = await burst('breaks off');
  expect(broken.consumers[0]!.messages).toBeLessThan(calm.consumers[0]!.messages);
  for (let n = 1; n < 10; n += 1) expect(broken.consumers[n]?.arrivals).toEqual(calm.consumers[n]?.arrivals);
});

test('load: 20,000 updates of 1,000 services to ten consumers -> all ten hold the same final state', async () => {
  const time = new VirtualTime();
  const network = networkOn(time);
  const names = Array.from({ length: 10 }, (_, n) => `c${n}`);
  const owner = new LoadOwner(time, network, 'owner', names);
  for (let n = 0; n < 1000; n += 1) owner.put(`s${n}`, 'first');
  const consumers = names.map((name) => new LoadConsumer(time, network, name, owner.address, { draft: v1alpha1 }));
  await time.advance(1000);
  for (let n = 0; n < 20_000; n += 1) {
    owner.put(`s${n % 1000}`, `update ${n}`);
    if (n % 100 === 99) await time.advance(1);
  }
  await time.advance(1000);
  const wanted = Array.from({ length: 1000 }, (_, n) => `s${n}.shop.x.example update ${19_000 + n}`).sort();
  for (const { held } of consumers) expect(Array.from(held, (pair) => pair.join(' ')).sort()).toEqual(wanted);
});

test('load: a catalog of 4,097 services, and one of 20,000 -> all of it arrives, whatever the window', async () => {
  for (const services of [4097, 20_000]) {
    const time = new VirtualTime();
    const network = networkOn(time);
    const owner = new LoadOwner(time, network, 'owner', ['c']);
    for (let n = 0; n < services; n += 1) owner.put(`s${n}`, 'first');
    const consumer = new LoadConsumer(time, network, 'c', owner.address, { draft: v1alpha1 });
    await time.advance(5000);
    expect(consumer.held.size).toBe(services);
    expect(consumer.session.state.kind).toBe('waiting');
  }
});

test('load: many messages both ways at once, both drafts -> they end, and memory stays flat', async () => {
  const wanted = Number(process.env['PORTOLAN_LOAD'] ?? 20_000);
  const time = new VirtualTime();
  const network = networkOn(time);
  const sides = ['a', 'b'].map((name) => new LoadOwner(time, network, name, ['a', 'b'])) as [LoadOwner, LoadOwner];
  for (const side of sides) for (let n = 0; n < 200; n += 1) side.put(`s${n}`, 'first');
  const consumers = [
    new LoadConsumer(time, network, 'b', sides[0].address, { draft: v1alpha1 }),
    new LoadConsumer(time, network, 'a', sides[1].address, { draft: v1alpha2 }),
  ] as const;
  await time.advance(500);
  let heapAfterWarmUp = 0;
  for (let round = 0; Math.min(consumers[0].messages, consumers[1].messages) < wanted; round += 1) {
    expect(round).toBeLessThan(wanted / 100);
    for (const side of sides) for (let n = 0; n < 200; n += 1) side.put(`s${n}`, `round ${round}`);
    await time.advance(20);
    if (round === 20) heapAfterWarmUp = heapBytes();
  }
  await time.advance(1000);
  for (const { owner } of sides) for (const report of owner.reports()) expect(report.lag).toBe(0);
  for (const consumer of consumers) expect(new Set(consumer.held.values()).size).toBe(1);
  expect(heapBytes() - heapAfterWarmUp).toBeLessThan(20 * 1024 * 1024);
}, 600_000);

function heapBytes(): number {
  setFlagsFromString('--expose_gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}
