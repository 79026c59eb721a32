import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { sleep } from '../../base/world.ts';
import { deleteIfPresent } from '../client/absent.ts';
import { type Lease, leaseType } from '../objects/lease.ts';
import { type LeaderTimes, standForLeader } from './leader.ts';

const boss = { namespace: 'default', name: 'boss' };

test('leader: two candidates -> exactly one leads', async () => {
  const { sim, stand, leaders } = await start();
  stand('a');
  stand('b');
  await sim.time.advance(60_000);
  expect(leaders()).toHaveLength(1);
});

test('leader: it is told to stop -> its work ends first, then the other leads without waiting for the lease', async () => {
  const { sim, stand, leaders, terms } = await start();
  const a = stand('a', { wrapUpMs: 20_000 });
  await sim.time.until(() => leaders().includes('a'), { withinMs: 5000 });
  stand('b');
  await sim.time.advance(5000);
  const stopped = a.stop();
  await sim.time.settle(stopped);
  const gone = sim.time.nowMs;
  await sim.time.until(() => leaders().includes('b'), { withinMs: 4000 });
  expect(sim.time.nowMs - gone).toBeLessThan(4000);
  expect(terms).toEqual(['a begins', 'a ends', 'b begins']);
});

test('leader: it is told to stop while its first request is under way -> it stops, and another leads at once', async () => {
  const { sim, stand, leaders, terms } = await start();
  const a = stand('a');
  await sim.time.settle(a.stop(), { withinMs: 10_000 });
  stand('b');
  await sim.time.until(() => leaders().includes('b'), { withinMs: 6000 });
  expect(terms).toEqual(['b begins']);
});

test('leader: it is told to stop while a renewal is under way -> the Lease is given up all the same', async () => {
  const { sim, home, stand, leaders } = await start();
  const a = stand('a');
  await sim.time.until(() => leaders().includes('a'), { withinMs: 5000 });
  stand('b');
  await sim.time.advance(5000);
  const slow = sim.world('slow');
  let renewals = 0;
  sim.network.listen(home.url, async (request) => {
    // The renewal is written after the Lease was read to be given up, and before that is written.
    if (request.method === 'PUT') await sleep(slow.timers, ++renewals === 1 ? 300 : 500);
    return home.api.handle(request);
  });
  await sim.time.until(() => renewals === 1, { withinMs: 5000 });
  await sim.time.settle(a.stop(), { withinMs: 10_000 });
  await sim.time.until(() => leaders().includes('b'), { withinMs: 5000 });
});

test('leader: it is killed -> the other leads after the lease time it saw nothing change, not before', async () => {
  const { sim, stand, kill, leaders } = await start();
  stand('a');
  await sim.time.until(() => leaders().includes('a'), { withinMs: 5000 });
  stand('b');
  await sim.time.advance(10_000);
  kill('a');
  await sim.time.advance(12_000);
  expect(leaders()).toEqual([]);
  await sim.time.until(() => leaders().includes('b'), { withinMs: 8000 });
});

test.each([-3_600_000, 3_600_000])(
  'leader: the clock of the other is off by %i ms -> makes no difference',
  async (wallSkewMs) => {
    const { sim, stand, leaders, terms } = await start();
    stand('a');
    await sim.time.until(() => leaders().includes('a'), { withinMs: 5000 });
    stand('b', { wallSkewMs });
    await sim.time.advance(120_000);
    expect(terms).toEqual(['a begins']);
  },
);

test('leader: its renewals fail -> steps down before the other may lead, stands again when it can', async () => {
  const { sim, home, stand, leaders, terms, overlaps } = await start();
  stand('a');
  await sim.time.until(() => leaders().includes('a'), { withinMs: 5000 });
  stand('b');
  await sim.time.advance(5000);
  for (const fault of ['refused', 'silent'] as const) {
    const [leader] = leaders();
    sim.network.setLink(leader!, home.url, fault);
    await sim.time.until(() => leaders().length === 1 && leaders()[0] !== leader, { withinMs: 40_000 });
    sim.network.setLink(leader!, home.url, 'up');
    await sim.time.advance(60_000);
    expect(leaders()).toHaveLength(1);
  }
  expect(terms).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'a begins']);
  expect(overlaps()).toBe(0);
});

test('leader: a short outage of the home -> the leader stays', async () => {
  const { sim, home, stand, leaders, terms } = await start();
  stand('a');
  stand('b');
  await sim.time.until(() => leaders().length === 1, { withinMs: 5000 });
  for (const name of ['a', 'b']) sim.network.setLink(name, home.url, 'refused');
  await sim.time.advance(5000);
  for (const name of ['a', 'b']) sim.network.setLink(name, home.url, 'up');
  await sim.time.advance(60_000);
  expect(terms).toHaveLength(1);
});

test('leader: somebody else writes themselves into the Lease -> the leader steps down at its next renewal', async () => {
  const { sim, client, stand, leaders, terms } = await start();
  stand('a');
  await sim.time.until(() => leaders().includes('a'), { withinMs: 5000 });
  const lease = await sim.time.settle(client.get<Lease>(leaseType, boss));
  await sim.time.settle(client.update(leaseType, { ...lease, spec: { ...lease.spec, holderIdentity: 'z' } }));
  await sim.time.advance(5000);
  expect([leaders(), terms]).toEqual([[], ['a begins', 'a ends']]);
});

test('leader: its Lease is deleted -> it creates the Lease again and leads on; the other waits', async () => {
  const { sim, client, stand, leaders, terms, overlaps } = await start();
  stand('a');
  await sim.time.until(() => leaders().includes('a'), { withinMs: 5000 });
  stand('b');
  await sim.time.advance(5000);
  for (let round = 0; round < 10; round += 1) {
    await sim.time.settle(client.delete(leaseType, boss));
    await sim.time.advance(5000 + round * 100);
    const lease = await sim.time.settle(client.get<Lease>(leaseType, boss));
    expect(lease.spec?.holderIdentity).toBe('a');
  }
  expect([terms, overlaps()]).toEqual([['a begins'], 0]);
});

test('leader: it is killed and its Lease is deleted -> the other creates it, and leads after the lease time', async () => {
  const { sim, client, stand, kill, leaders } = await start();
  stand('a');
  await sim.time.until(() => leaders().includes('a'), { withinMs: 5000 });
  stand('b');
  await sim.time.advance(5000);
  kill('a');
  await sim.time.settle(client.delete(leaseType, boss));
  await sim.time.advance(20_000);
  expect(leaders()).toEqual([]);
  await sim.time.until(() => leaders().includes('b'), { withinMs: 8000 });
});

test.each([
  ['POST', undefined],
  ['PUT', 'update' as const],
])(
  'leader: two candidates create the Lease by %s at the same time -> one leads, neither has a problem',
  async (_method, createBy) => {
    const { sim, home, stand, leaders } = await start();
    let asked = 0;
    const both = sim.world('both');
    // Both have seen that there is none before either writes.
    sim.network.listen(home.url, async (request) => {
      const response = await home.api.handle(request);
      if (request.method === 'GET') asked += 1;
      while (asked < 2) await sleep(both.timers, 10);
      return response;
    });
    const candidates = [stand('a', { createBy }), stand('b', { createBy })];
    await sim.time.until(() => leaders().length > 0, { withinMs: 5000 });
    expect([leaders().length, candidates.map((one) => one.problem())]).toEqual([1, ['', '']]);
  },
);

test('leader: work that ends by itself -> the Lease is given up, and somebody stands again', async () => {
  const { sim, stand, terms } = await start();
  stand('a', { workMs: 1000 });
  await sim.time.advance(10_000);
  expect(terms.slice(0, 3)).toEqual(['a begins', 'a ends', 'a begins']);
});

test('leader: the answer to a renewal comes after the term has ended -> it does not make anybody leader', async () => {
  const { sim, home, stand, leaders, working } = await start();
  const times = { leaseMs: 15_000, renewDeadlineMs: 3_000, retryMs: 2_000 };
  stand('a', { times });
  await sim.time.until(() => leaders().includes('a'), { withinMs: 5000 });
  const slow = sim.world('slow');
  sim.network.listen(home.url, async (request) => {
    const response = await home.api.handle(request);
    if (request.method === 'PUT') await sleep(slow.timers, 1_450);
    return response;
  });
  let imposters = 0;
  for (let round = 0; round < 200; round += 1) {
    await sim.time.advance(50);
    if (leaders().includes('a') && !working.has('a')) imposters += 1;
  }
  expect(imposters).toBe(0);
});

test('leader: random faults and deletions of the Lease, ten seeds -> never two at once, and one again when the faults are over', async () => {
  for (let seed = 1; seed <= 10; seed += 1) {
    const { sim, home, client, stand, overlaps, leaders } = await start(seed);
    const random = sim.world('chaos').random;
    for (const name of ['a', 'b', 'c']) stand(name);
    // All have seen a Lease.
    await sim.time.advance(5_000);
    for (let round = 0; round < 60; round += 1) {
      const name = ['a', 'b', 'c'][Math.floor(random.float() * 3)]!;
      sim.network.setLink(name, home.url, (['up', 'refused', 'silent'] as const)[Math.floor(random.float() * 3)]!);
      if (random.float() < 0.2) await sim.time.settle(deleteIfPresent(client, leaseType, boss));
      await sim.time.advance(random.float() * 20_000);
    }
    for (const name of ['a', 'b', 'c']) sim.network.setLink(name, home.url, 'up');
    await sim.time.advance(60_000);
    expect([seed, overlaps(), leaders().length]).toEqual([seed, 0, 1]);
  }
});

interface StandOptions {
  readonly wallSkewMs?: number;
  readonly wrapUpMs?: number;
  readonly workMs?: number;
  readonly times?: LeaderTimes;
  readonly createBy?: 'update';
}

async function start(seed = 1) {
  const sim = new Simulation({ seed });
  const home = await startHome(sim);
  const candidates = new Map<string, ReturnType<typeof standForLeader>>();
  const worlds = new Map<string, ReturnType<Simulation['world']>>();
  const terms: string[] = [];
  const working = new Set<string>();
  let overlapping = 0;
  const leaders = () => [...candidates].filter(([, candidate]) => candidate.isLeader()).map(([name]) => name);
  const watchdog = () => {
    if (leaders().length > 1) overlapping += 1;
    sim.time.schedule(100, watchdog);
  };
  watchdog();
  const stand = (name: string, options: StandOptions = {}) => {
    const world = sim.world(name, options);
    worlds.set(name, world);
    const client = home.clientOf(world);
    const candidate = standForLeader({
      client,
      world,
      log: silentLog,
      ...boss,
      identity: name,
      times: options.times,
      ...(options.createBy && { create: (lease) => client.update(leaseType, lease) }),
      whileLeading: async (signal) => {
        terms.push(`${name} begins`);
        working.add(name);
        await sleep(world.timers, options.workMs ?? 1e12, signal).catch(() => {});
        if (options.wrapUpMs !== undefined) await sleep(world.timers, options.wrapUpMs);
        terms.push(`${name} ends`);
        working.delete(name);
      },
    });
    candidates.set(name, candidate);
    return candidate;
  };
  const kill = (name: string) => {
    worlds.get(name)?.revoke();
    candidates.delete(name);
  };
  return {
    sim,
    home,
    working,
    client: home.clientOf(sim.world('test')),
    stand,
    kill,
    leaders,
    terms,
    overlaps: () => overlapping,
  };
}
