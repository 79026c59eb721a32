import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { createLog, silentLog } from '../../base/log.ts';
import type { Client } from '../client/client.ts';
import { type Lease, leaseType } from '../objects/lease.ts';
import { partState } from '../objects/part-lease.ts';
import { partStatuses } from '../objects/part-status.ts';
import { keepPartLease } from './part-lease.ts';

const ref = { namespace: 'portolan-system', name: 'portolan-proxy-node-1' };

test('part lease: a part runs -> a Lease with its part, node, mode and version, renewed every 5 s', async () => {
  const { sim, keep, lease } = await start();
  keep('a');
  await sim.time.advance(1000);
  const first = await lease();
  expect(first?.metadata).toMatchObject({
    labels: { 'app.kubernetes.io/managed-by': 'portolan', 'portolan.dev/part': 'proxy' },
    annotations: { 'portolan.dev/node': 'Node_1', 'portolan.dev/mode': 'nftables', 'portolan.dev/rules': '3' },
  });
  expect(first?.metadata.annotations?.['portolan.dev/version']).toMatch(/^\d+\./);
  await sim.time.advance(10_500);
  expect(Date.parse((await lease())!.spec!.renewTime!) - Date.parse(first!.spec!.renewTime!)).toBeGreaterThan(9000);
});

test('part lease: renewed for a minute -> each from the one before, by which a watch knows the home again', async () => {
  const { sim, client, keep } = await start();
  keep('a', client);
  await sim.time.advance(1000);
  const first = client.renewals.newest()!;
  await sim.time.advance(60_000);
  const last = client.renewals.successor(first)!;
  expect(Number(last.object.metadata.resourceVersion) - Number(first.object.metadata.resourceVersion)).toBe(12);
});

test('part lease: the admin endpoint opens -> its address is in the Lease at once, and stays there', async () => {
  const { sim, keep, lease } = await start();
  const kept = keep('a');
  kept.announce({ url: 'http://127.0.0.1:9465', pod: 'proxy-x' });
  await sim.time.advance(1000);
  const wanted = { 'portolan.dev/admin': 'http://127.0.0.1:9465', 'portolan.dev/pod': 'proxy-x' };
  expect((await lease())?.metadata.annotations).toMatchObject(wanted);
  expect((await lease())?.spec?.holderIdentity).toBe(kept.holder);
  await sim.time.advance(25_000);
  expect((await lease())?.metadata.annotations).toMatchObject(wanted);
  kept.announce({ url: 'http://127.0.0.1:9466' });
  await sim.time.settle(kept.stop());
  await sim.time.advance(30_000);
  expect(await lease()).toBeUndefined();
});

test('part lease: it stops in order -> the Lease is gone', async () => {
  const { sim, keep, lease } = await start();
  const kept = keep('a');
  await sim.time.advance(1000);
  await sim.time.settle(kept.stop());
  expect(await lease()).toBeUndefined();
});

test('part lease: two of a kind on one machine -> a Lease each, both renewed, each removes its own', async () => {
  const { sim, keep, states } = await start();
  const first = keep('a');
  await sim.time.advance(1000);
  const second = keep('b');
  await sim.time.advance(120_000);
  expect(await states()).toEqual([
    ['portolan-proxy-node-1', 'reported', first.holder],
    ['portolan-proxy-node-1.2', 'reported', second.holder],
  ]);
  await sim.time.settle(first.stop());
  await sim.time.advance(60_000);
  expect(await states()).toEqual([['portolan-proxy-node-1.2', 'reported', second.holder]]);
  await sim.time.settle(second.stop());
  expect(await states()).toEqual([]);
});

test('part lease: three start at the same moment -> three Leases', async () => {
  const { sim, keep, states } = await start();
  for (const name of ['a', 'b', 'c']) keep(name);
  await sim.time.advance(60_000);
  expect((await states()).map(([name, state]) => `${name} ${state}`)).toEqual([
    'portolan-proxy-node-1 reported',
    'portolan-proxy-node-1.2 reported',
    'portolan-proxy-node-1.3 reported',
  ]);
});

test('part lease: it crashes and is started again -> reports at once, and takes over the old Lease; none is left silent', async () => {
  const { sim, keep, kill, states } = await start();
  keep('a');
  await sim.time.advance(15_000);
  kill('a');
  const again = keep('b');
  await sim.time.advance(1000);
  expect(await states()).toContainEqual([expect.any(String), 'reported', again.holder]);
  await sim.time.advance(45_000);
  expect(await states()).toEqual([['portolan-proxy-node-1', 'reported', again.holder]]);
  await sim.time.settle(again.stop());
  expect(await states()).toEqual([]);
});

test('part lease: it crashes and is started again -> the old Lease is shown as silent for at most 2.5 s', async () => {
  const { sim, keep, kill, shown } = await start();
  keep('a');
  await sim.time.advance(15_000);
  kill('a');
  keep('b');
  let silentMs = 0;
  for (let ms = 0; ms < 30_000; ms += 250) {
    await sim.time.advance(250);
    if ((await shown()).includes('silent')) silentMs += 250;
  }
  expect(silentMs).toBeLessThanOrEqual(2_500);
  expect(await shown()).toEqual(['reporting']);
});

test('part lease: it crashes, is started again and stops in order within 12 s -> no silent part is shown, and none is left', async () => {
  const { sim, keep, kill, states, shown } = await start();
  keep('a');
  await sim.time.advance(15_000);
  kill('a');
  const again = keep('b');
  await sim.time.advance(4_000);
  await sim.time.settle(again.stop());
  await sim.time.advance(60_000);
  expect(await states()).toEqual([['portolan-proxy-node-1', 'silent', expect.any(String)]]);
  expect(await shown()).toEqual([]);
  const later = keep('c');
  await sim.time.advance(1_000);
  expect(await shown()).toEqual(['reporting']);
  expect(await states()).toEqual([['portolan-proxy-node-1', 'reported', later.holder]]);
});

test('part lease: two crash, both are started again and stop within 12 s -> neither is shown as silent', async () => {
  const { sim, keep, kill, shown } = await start();
  keep('a');
  await sim.time.advance(1_000);
  keep('b');
  await sim.time.advance(15_000);
  for (const name of ['a', 'b']) kill(name);
  const again = [keep('c'), keep('d')];
  await sim.time.advance(4_000);
  for (const one of again) await sim.time.settle(one.stop());
  await sim.time.advance(60_000);
  expect(await shown()).toEqual([]);
});

test('part lease: a second one runs for a few seconds beside one that lives -> that one reports on, and is missed when it dies', async () => {
  const { sim, keep, kill, shown, lease } = await start();
  const first = keep('a');
  await sim.time.advance(1_000);
  const second = keep('b');
  await sim.time.advance(2_000);
  await sim.time.settle(second.stop());
  expect(await shown()).toEqual(['reporting']);
  expect((await lease())?.metadata.annotations?.['portolan.dev/replaced-by']).toBe(second.holder);
  await sim.time.advance(15_000);
  expect((await lease())?.metadata.annotations?.['portolan.dev/replaced-by']).toBeUndefined();
  expect((await lease())?.spec?.holderIdentity).toBe(first.holder);
  kill('a');
  await sim.time.advance(60_000);
  expect(await shown()).toEqual(['silent']);
});

test('part lease: one of two crashes -> it is silent, and the other one does not hide that', async () => {
  const { sim, keep, kill, states } = await start();
  keep('a');
  await sim.time.advance(1000);
  const second = keep('b');
  await sim.time.advance(60_000);
  kill('a');
  await sim.time.advance(3_600_000);
  expect(await states()).toEqual([
    ['portolan-proxy-node-1', 'silent', expect.any(String)],
    ['portolan-proxy-node-1.2', 'reported', second.holder],
  ]);
});

test('part lease: the home is away for an hour -> one log line, the part knows, and renewed when it is back', async () => {
  const { sim, home, keep, lease, lines } = await start();
  const kept = keep('a');
  expect(kept.problem()).toBe('the home has not answered yet');
  await sim.time.advance(1000);
  expect(kept.problem()).toBe('');
  sim.network.setLink('a', home.url, 'refused');
  await sim.time.advance(3_600_000);
  expect(lines).toEqual([expect.stringContaining('cannot renew the lease of this part')]);
  expect(partState((await lease())!, sim.world('reader').clock.wallMs()).kind).toBe('silent');
  expect(kept.problem()).toMatch(/^the home does not take the lease of this part: /);
  sim.network.setLink('a', home.url, 'up');
  await sim.time.advance(30_000);
  expect(kept.problem()).toBe('');
  expect(partState((await lease())!, sim.world('reader').clock.wallMs()).kind).toBe('reported');
});

test('part lease: its process is gone -> silent for readers within 15 s, and not before two renewals are missing', async () => {
  const { sim, keep, kill, lease } = await start();
  keep('a');
  await sim.time.advance(20_900);
  const stateNow = async () => partState((await lease())!, sim.world('reader').clock.wallMs()).kind;
  kill('a');
  await sim.time.advance(6_000);
  expect(await stateNow()).toBe('reported');
  await sim.time.advance(8_000);
  expect(await stateNow()).toBe('silent');
});

test('part lease: the home is away for 20 s -> renewed within 3 s of its return', async () => {
  const { sim, home, keep, lease } = await start();
  keep('a');
  await sim.time.advance(1_000);
  sim.network.setLink('a', home.url, 'refused');
  await sim.time.advance(20_000);
  sim.network.setLink('a', home.url, 'up');
  await sim.time.advance(3_000);
  expect(partState((await lease())!, sim.world('reader').clock.wallMs()).kind).toBe('reported');
});

test('part lease: the extras change again and again -> written once in a second, and as often as before afterwards', async () => {
  const { sim, home, keep, lease } = await start();
  const kept = keep('a');
  await sim.time.advance(1000);
  const writes = async (ms: number) => {
    const { revision } = home;
    await sim.time.advance(ms);
    return home.revision - revision;
  };
  const renewedAt = async () => (await lease())!.spec!.renewTime;
  const before = await renewedAt();
  for (let i = 0; i < 100; i += 1) kept.changed();
  expect(await writes(1_100)).toBe(1);
  expect(await renewedAt()).not.toBe(before);
  expect(await writes(30_000)).toBe(6);
});

test('part lease: somebody deletes it -> made again', async () => {
  const { sim, client, keep, lease } = await start();
  keep('a');
  await sim.time.advance(1000);
  await sim.time.settle(client.delete(leaseType, ref));
  await sim.time.advance(11_000);
  expect(await lease()).toBeDefined();
});

async function start() {
  const sim = new Simulation({ seed: 1 });
  const home = await startHome(sim);
  const client = home.clientOf(sim.world('test'));
  const lines: string[] = [];
  const worlds = new Map<string, { revoke(): void }>();
  const kill = (name: string) => worlds.get(name)?.revoke();
  const keep = (name: string, own?: Client) => {
    const world = sim.world(name);
    worlds.set(name, world);
    const log =
      name === 'a' ? createLog({ clock: world.clock, level: 'info', write: (line) => lines.push(line) }) : silentLog;
    const what = { part: 'proxy', id: 'Node_1', node: 'Node_1', mode: 'nftables' } as const;
    return keepPartLease({
      ...what,
      client: own ?? home.clientOf(world),
      world,
      log,
      extras: () => ({ 'portolan.dev/rules': '3' }),
    });
  };
  const lease = () =>
    sim.time.settle(client.get<Lease>(leaseType, ref).catch(() => undefined)) as Promise<Lease | undefined>;
  /** Name, state and holder of each Lease, by name. */
  const states = async () => {
    const { items } = await sim.time.settle(client.list<Lease>(leaseType, { namespace: ref.namespace }));
    const nowMs = sim.world('reader').clock.wallMs();
    return items
      .map((one) => [one.metadata.name, partState(one, nowMs).kind, one.spec?.holderIdentity])
      .sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
  };
  /** The state of each part, as commands and pages show it. */
  const shown = async () => {
    const { items } = await sim.time.settle(client.list<Lease>(leaseType, { namespace: ref.namespace }));
    return partStatuses(items, sim.world('reader').clock.wallMs()).map(({ state }) => state);
  };
  return { sim, home, client, keep, kill, lease, lines, states, shown };
}
