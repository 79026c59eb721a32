import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { createLog, silentLog } from '../../base/log.ts';
import { type Lease, leaseType } from '../objects/lease.ts';
import { partState } from '../objects/part-lease.ts';
import { keepPartLease } from './part-lease.ts';

const ref = { namespace: 'portolan-system', name: 'portolan-proxy-node-1' };

test('part lease: a part runs -> a Lease with its part, node, mode and version, renewed every 10 s', async () => {
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

test('part lease: another process of the node took it over -> the one that ends leaves it', async () => {
  const { sim, keep, lease } = await start();
  const old = keep('a');
  await sim.time.advance(1000);
  keep('b');
  await sim.time.advance(1000);
  await sim.time.settle(old.stop());
  await sim.time.advance(30_000);
  expect(partState((await lease())!, sim.world('reader').clock.wallMs()).kind).toBe('reported');
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
  const keep = (name: string) => {
    const world = sim.world(name);
    const log =
      name === 'a' ? createLog({ clock: world.clock, level: 'info', write: (line) => lines.push(line) }) : silentLog;
    const what = { part: 'proxy', id: 'Node_1', node: 'Node_1', mode: 'nftables' } as const;
    return keepPartLease({
      ...what,
      client: home.clientOf(world),
      world,
      log,
      extras: () => ({ 'portolan.dev/rules': '3' }),
    });
  };
  const lease = () =>
    sim.time.settle(client.get<Lease>(leaseType, ref).catch(() => undefined)) as Promise<Lease | undefined>;
  return { sim, home, client, keep, lease, lines };
}
