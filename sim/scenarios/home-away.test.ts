// A cluster whose home is dead or frozen while its agent lives: the agent says so in its lease, and the others treat what it
// exports by the staleness policy.
import { describe, expect, test } from 'vitest';
import { heartbeatType } from '../../src/clusterset/kinds/heartbeat.ts';
import { memberLeaseName } from '../../src/clusterset/rules/broker-layout.ts';
import { memberNamespace, SimClusterSet, type SimClusterSetOptions } from '../clusterset.ts';
import { openDesk, typeAt } from '../command.ts';
import { importLine, sliceLines } from '../look.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';
const east = 'east: 10.1.0.1 on http>8080';
const west = 'west: 10.2.0.1 on http>8080';
const few = ['east', 'west'];
/** The first three watch the heartbeats, the last follows their reports. */
const many = ['a', 'b', 'c', 'east', 'west'];

async function start(options: Partial<SimClusterSetOptions> = {}) {
  const set = await new SimClusterSet({ clusters: few, ...options }).start({ namespaces: ['shop'] });
  await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
  await exportService(set.home('west').admin, key, { endpoints: ['10.2.0.1'] });
  await set.time.advance(40_000);
  const there = () => sliceLines(set.home('west').admin, key);
  expect(await there()).toEqual([east, west]);
  const desk = await openDesk(set, 'west');
  const say = async (line: string) => (await set.time.settle(typeAt(desk, line))).join('\n');
  return { set, there, say, desk };
}

const faults = {
  killed: {
    make: (set: SimClusterSet) => set.home('east').kill(),
    mend: (set: SimClusterSet) => set.home('east').start(),
  },
  frozen: {
    make: (set: SimClusterSet) => set.simulation.network.setLink('agent-east', set.home('east').url, 'silent'),
    mend: async (set: SimClusterSet) => set.simulation.network.setLink('agent-east', set.home('east').url, 'up'),
  },
};

describe('home away', () => {
  for (const [how, { make, mend }] of Object.entries(faults)) {
    for (const clusters of [few, many]) {
      test(`home away: ${how}, ${clusters.length} clusters -> told within 15 s, withdrawn by the lease time with the reason, back when it is`, async () => {
        const { set, there, say, desk } = await start({ clusters });
        make(set);
        await set.time.advance(15_000);
        expect(await say('status')).toMatch(
          /problem: PTL0207 home of cluster east: it does not answer the agent there, since /,
        );
        expect(desk.exitCode).toBe(7);
        expect(await say('status')).toMatch(/^east .* home away since \d{4}-/m);
        expect(await say(`explain ${key}`)).toMatch(/^east .* home away since \d{4}-/m);
        expect(await there()).toEqual([east, west]);

        await set.time.advance(45_000);
        expect(await there()).toEqual([west]);
        expect(await importLine(set.home('west').admin, key)).toBe('ClusterSetIP http:80/TCP from west');
        expect(await say('status')).toMatch(
          /cluster east is not trusted, because its agent has had no answer from its home since \S+; withdrawn: shop\/checkout/,
        );
        expect(await say(`explain ${key}`)).toMatch(/^east .* no, its home is away/m);
        expect(await say('status')).not.toContain('PTL0202');

        // It stays so, however long: the lease is renewed all the time.
        await set.time.advance(300_000);
        expect(await there()).toEqual([west]);

        await mend(set);
        await set.time.advance(20_000);
        expect(await there()).toEqual([east, west]);
        expect(await say('status')).not.toMatch(/PTL0207|not trusted|home away/);
        expect(desk.exitCode).toBe(0);
      });
    }
  }

  test('home away: NotReady -> its endpoints stay and are marked', async () => {
    const { set, there } = await start({ set: { staleness: 'NotReady' } });
    faults.frozen.make(set);
    await set.time.advance(60_000);
    expect(await there()).toEqual([east.replace('10.1.0.1', '10.1.0.1!'), west]);
  });

  test('home away: a restart of 6 s -> the lease vouches all along, nobody notices', async () => {
    const { set, there, say } = await start();
    set.home('east').kill();
    await set.time.advance(6_000);
    await set.home('east').start();
    for (let second = 0; second < 40; second += 1) {
      await set.time.advance(1_000);
      const lease = await set.broker.admin.get(heartbeatType, {
        namespace: memberNamespace('east'),
        name: memberLeaseName,
      });
      expect(lease.metadata.annotations).not.toHaveProperty(['portolan.dev/home-away-since']);
    }
    expect(await there()).toEqual([east, west]);
    expect(await say('status')).not.toContain('PTL0207');
  });

  test('home away: the agents of others are restarted meanwhile -> still withdrawn, for the same reason', async () => {
    const { set, there, say } = await start();
    faults.killed.make(set);
    await set.time.advance(60_000);
    set.killAgent('west');
    set.startAgent('west');
    await set.time.advance(60_000);
    expect(await there()).toEqual([west]);
    expect(await say('status')).toMatch(/its agent has had no answer from its home since/);
  });
});
