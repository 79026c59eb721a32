// Agents as processes have them: candidates for leading, which stop working when they lose the broker. What they leave at home
// says that it is old, whatever happens to the home or to the agent meanwhile.
import { describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { createMetrics } from '../../src/base/metrics.ts';
import type { Agent, createAgent } from '../../src/clusterset/agent/agent.ts';
import { membershipSecret } from '../../src/clusterset/membership/membership.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { secretType } from '../../src/kube/objects/secret.ts';
import { startAgentRole } from '../../src/main/agent/role.ts';
import { createNamespace, memberNamespace, SimClusterSet, type SimClusterSetOptions, setName } from '../clusterset.ts';
import { openDesk, typeAt } from '../command.ts';
import { exportLine, importLine } from '../look.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';
const fine = 'Valid=True/Valid Ready=True/Exported Conflict=False/NoConflicts';
const old = 'Valid=True/Valid Ready=Unknown/BrokerAway Conflict=Unknown/NoConflicts';

const accessOf = (set: SimClusterSet, user: string) => ({ server: set.broker.url, bearerToken: async () => user });

async function start(options: Partial<SimClusterSetOptions> = {}) {
  const set = new SimClusterSet({ clusters: ['east', 'west'], createAgent: asRole, ...options });
  function asRole({ world, log, home, membership }: Parameters<typeof createAgent>[0]): Agent {
    const role = { stop: async () => {} };
    return {
      start: () => {
        const brokerAccess = accessOf(set, `agent-${membership.clusterId}`);
        const { stop } = startAgentRole({ world, log, metrics: createMetrics(), home, brokerAccess });
        role.stop = stop;
      },
      leaveWord: async () => {},
      stop: () => role.stop(),
    };
  }
  await set.start({ namespaces: ['shop'], agents: [] });
  for (const clusterId of ['east', 'west']) {
    const namespace = memberNamespace(clusterId);
    const { object } = membershipSecret({
      ...{ clusterset: setName, clusterId, namespace, accountNamespace: namespace, accountName: clusterId },
      ...{ server: set.broker.url, certificateAuthority: '', token: 'token', tokenIssuedAt: '', tokenExpiresAt: '' },
    });
    await createNamespace(set.home(clusterId), systemNamespace).catch(() => {});
    await set.home(clusterId).admin.create(secretType, object);
    set.startAgent(clusterId);
  }
  for (const id of ['east', 'west'])
    await exportService(set.home(id).admin, key, { endpoints: [id === 'east' ? '10.1.0.1' : '10.2.0.1'] });
  await set.time.advance(30_000);
  const west = set.home('west').admin;
  expect(await exportLine(west, key)).toBe(fine);
  return { set, west };
}

describe('broker outage', () => {
  test('broker outage: answers take half a second, killed at any time of a renewal period -> Unknown within 15 s, and all the time', async () => {
    const { set, west } = await start({ latencyMs: { min: 150, max: 300 } });
    for (let round = 0; round < 16; round += 1) {
      set.broker.kill();
      await set.time.advance(15_000);
      for (let second = 0; second < 15; second += 1) {
        expect(await exportLine(west, key), `round ${round}, ${15 + second} s`).toBe(old);
        await set.time.advance(1_000);
      }
      await set.broker.start();
      await set.time.advance(40_000 + 370 * round);
      expect(await exportLine(west, key), `round ${round}`).toBe(fine);
    }
  });

  test('broker outage: the home takes no writes when the leader stops -> Unknown soon after it does again', async () => {
    const { set, west } = await start();
    set.broker.kill();
    await set.time.advance(4_000);
    set.simulation.network.setLink('agent-west', set.home('west').url, 'silent');
    await set.time.advance(40_000);
    expect(await exportLine(west, key)).toBe(fine);
    set.simulation.network.setLink('agent-west', set.home('west').url, 'up');
    await set.time.advance(15_000);
    expect(await exportLine(west, key)).toBe(old);
    await set.broker.start();
    await set.time.advance(40_000);
    expect(await exportLine(west, key)).toBe(fine);
  });

  test('broker outage: the agent is killed before it notices, and started meanwhile -> Unknown within 15 s', async () => {
    const { set, west } = await start();
    set.broker.kill();
    set.killAgent('west');
    await set.time.advance(30_000);
    expect(await exportLine(west, key)).toBe(fine);
    set.startAgent('west');
    await set.time.advance(15_000);
    expect(await exportLine(west, key)).toBe(old);
    await set.broker.start();
    await set.time.advance(40_000);
    expect(await exportLine(west, key)).toBe(fine);
  });

  test('broker outage: another agent of the cluster leads, and this one alone is cut off -> conditions stay as they are', async () => {
    const { set, west } = await start();
    const world = set.simulation.world('agent-west-2');
    const home = set.home('west').clientOf(world, { requestTimeoutMs: 10_000 });
    startAgentRole({
      world,
      log: silentLog,
      metrics: createMetrics(),
      home,
      brokerAccess: accessOf(set, 'agent-west'),
    });
    await set.time.advance(10_000);
    set.simulation.network.setLink('agent-west-2', set.broker.url, 'silent');
    for (let second = 0; second < 40; second += 1) {
      await set.time.advance(1_000);
      expect(await exportLine(west, key), `${second} s`).toBe(fine);
    }
  });

  test('broker outage: an agent comes back after its lease has run out -> nobody calls its services behind', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
    await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
    await exportService(set.home('west').admin, key, { endpoints: ['10.2.0.1'] });
    await set.time.advance(20_000);
    const desk = await openDesk(set, 'west');
    const west = set.home('west').admin;
    set.killAgent('east');
    await set.time.advance(45_000);
    expect(await importLine(west, key)).not.toContain('east');
    set.startAgent('east');
    for (let look = 0; look < 200 && !(await importLine(west, key)).includes('from east'); look += 1)
      await set.time.advance(50);
    await set.time.advance(100);
    const text = (await set.time.settle(typeAt(desk, 'status'))).join('\n');
    expect(text).toContain('lag: none');
  });
});
