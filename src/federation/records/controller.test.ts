import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { parseShardRecord } from '../rules/record.ts';
import { FederationShardSet } from '../rules/shard-set.ts';
import { type RecordStore, runFederationRecords } from './controller.ts';

const key = (service: string, cluster: string) => ({ federation: 'f', namespace: 'shop', service, cluster });
const record = (ip: string) => parseShardRecord(`{"externalIP": "${ip}", "clusterIP": "10.0.0.1"}`)!;

function setUp(present: Record<string, string> = {}) {
  const sim = new Simulation({ seed: 1 });
  const etcd = new Map(Object.entries(present));
  const mood = { isDown: false, writes: 0 };
  const check = () => {
    if (mood.isDown) throw new Error('etcd is away');
  };
  const store: RecordStore = {
    list: async () => {
      check();
      return { records: [...etcd].map(([name, value]) => ({ key: name, value })) };
    },
    put: async (name, value) => {
      check();
      mood.writes += 1;
      etcd.set(name, value);
    },
    remove: async (name) => {
      check();
      mood.writes += 1;
      etcd.delete(name);
    },
  };
  const shards = new FederationShardSet();
  const run = () => runFederationRecords({ world: sim.world('authority'), log: silentLog, shards, store });
  return { sim, etcd, shards, run, mood };
}

describe('federation records in etcd', () => {
  test("a shard -> the seed's key and value; its cluster's lease runs out -> not ready; gone -> gone", async () => {
    const { sim, etcd, shards, run } = setUp();
    shards.upsertShard(key('web', 'east'), record('104.0.0.1'));
    shards.setSynced();
    run();
    await sim.time.until(() => etcd.size === 1, { withinMs: 1000 });
    expect([...etcd]).toEqual([['/f/shop/web/east', '{"externalIP":"104.0.0.1","clusterIP":"10.0.0.1"}']]);
    shards.setClusterAlive('east', false);
    await sim.time.until(() => etcd.get('/f/shop/web/east')?.includes('"ready":false') === true, { withinMs: 1000 });
    shards.removeShard(key('web', 'east'));
    await sim.time.until(() => etcd.size === 0, { withinMs: 1000 });
  });

  test('not every member has been read yet -> nothing is removed', async () => {
    const { sim, etcd, shards, run } = setUp({ '/f/shop/web/west': '{"externalIP":"104.0.0.2"}' });
    shards.upsertShard(key('web', 'east'), record('104.0.0.1'));
    run();
    await sim.time.advance(60_000);
    expect([...etcd.keys()]).toEqual(['/f/shop/web/west']);
    shards.setSynced();
    await sim.time.until(() => [...etcd.keys()].join() === '/f/shop/web/east', { withinMs: 1000 });
  });

  test('a second start -> writes nothing', async () => {
    const { sim, shards, run, mood } = setUp();
    shards.upsertShard(key('web', 'east'), record('104.0.0.1'));
    shards.setSynced();
    const first = run();
    await sim.time.until(() => mood.writes === 1, { withinMs: 1000 });
    await first.stop();
    run();
    await sim.time.advance(10_000);
    expect(mood.writes).toBe(1);
  });

  test('etcd is away for a while, or somebody spoils a record -> made good afterwards [001-13]', async () => {
    const { sim, etcd, shards, run, mood } = setUp();
    shards.setSynced();
    run();
    await sim.time.advance(100);
    mood.isDown = true;
    shards.upsertShard(key('web', 'east'), record('104.0.0.1'));
    await sim.time.advance(5000);
    mood.isDown = false;
    await sim.time.until(() => etcd.size === 1, { withinMs: 15_000 });
    etcd.set('/f/shop/web/east', 'spoiled');
    await sim.time.until(() => etcd.get('/f/shop/web/east') !== 'spoiled', { withinMs: 310_000 });
  });
});
