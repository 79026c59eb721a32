import { afterEach, expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import type { StubZone } from '../../dns/config/config.ts';
import { Federations } from '../../dns/stub-zones/federations.ts';
import { configMapType } from '../../kube/objects/config-map.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { shareStubZones } from './shared-stub-zones.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function setUp() {
  const sim = new Simulation({ seed: 1 });
  const home = await startHome(sim);
  const client = home.clientOf(sim.world('test'));
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'portolan-system' } };
  await sim.time.settle(client.create(namespaceType, namespace).catch(() => undefined));
  /** A resolver of the cluster, as one of several behind an address. */
  const resolver = async (name: string) => {
    const world = sim.world(name);
    const store = shareStubZones({ client: home.clientOf(world), world, log: silentLog });
    stops.push(() => store.stop());
    let zones: readonly StubZone[] = [];
    const federations = new Federations({
      ...{ store, path: 'the home', log: silentLog, allowed: ['authority'] },
      onChange: (next) => {
        zones = next;
      },
    });
    await sim.time.settle(federations.load());
    const send = async (method: string, federation: string, server = '10.0.0.53') => {
      const body = Buffer.from(JSON.stringify({ nameservers: [server] }));
      const line = { method, path: `/federations/${federation}`, headers: {}, body };
      return sim.time.settle(federations.handle(line, 'authority').then(({ status }) => status));
    };
    return { zones: () => zones.map(({ zone, nameservers }) => `${zone} ${nameservers}`), send };
  };
  return { sim, home, client, resolver };
}

test('shared stub zones: posted to one resolver -> all know it, one that starts later too; deleted -> gone everywhere', async () => {
  const { sim, resolver } = await setUp();
  const [first, second] = [await resolver('one'), await resolver('two')];
  expect(await first.send('POST', 'world')).toBe(200);
  await sim.time.advance(1_000);
  expect(await second.send('POST', 'other', '10.0.0.54')).toBe(200);
  await sim.time.advance(1_000);
  const third = await resolver('three');
  const both = ['world.svc.federation 10.0.0.53', 'other.svc.federation 10.0.0.54'];
  for (const { zones } of [first, second, third]) expect(zones()).toEqual(both);
  expect(await third.send('DELETE', 'world')).toBe(200);
  await sim.time.advance(1_000);
  for (const { zones } of [first, second, third]) expect(zones()).toEqual(both.slice(1));
});

test('shared stub zones: the home is away at the start -> starts without them, and knows them when it is back', async () => {
  const { sim, home, resolver } = await setUp();
  expect(await (await resolver('one')).send('POST', 'world')).toBe(200);
  sim.network.setLink('two', home.url, 'refused');
  const second = await resolver('two');
  expect(second.zones()).toEqual([]);
  await expect(second.send('POST', 'late')).rejects.toThrow();
  sim.network.setLink('two', home.url, 'up');
  await sim.time.advance(60_000);
  expect(second.zones()).toEqual(['world.svc.federation 10.0.0.53']);
});

test('shared stub zones: somebody writes nonsense there -> the last good zones stay, and the next start goes on without', async () => {
  const { sim, client, resolver } = await setUp();
  const first = await resolver('one');
  await first.send('POST', 'world');
  await sim.time.advance(1_000);
  const ref = { namespace: 'portolan-system', name: 'portolan-stub-zones' };
  const body = { data: { 'stub-zones.json': '{"federations": {"x": null' } };
  await sim.time.settle(client.patch(configMapType, ref, { kind: 'merge', body }));
  await sim.time.advance(1_000);
  expect(first.zones()).toEqual(['world.svc.federation 10.0.0.53']);
  expect((await resolver('two')).zones()).toEqual([]);
});
