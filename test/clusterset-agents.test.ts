// Agents that are stopped, started, doubled, or lose their Lease or their home, as processes. The tests follow each other.

import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { importLine } from '../sim/look.ts';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import { membershipSecretName } from '../src/clusterset/membership/membership.ts';
import { memberLeaseName, memberNamespace, memberRoleName } from '../src/clusterset/rules/broker-layout.ts';
import { getOrUndefined } from '../src/kube/client/absent.ts';
import { type Lease, leaseType } from '../src/kube/objects/lease.ts';
import type { KubernetesObject } from '../src/kube/objects/object.ts';
import { systemNamespace } from '../src/kube/objects/ours.ts';
import { roleType } from '../src/kube/objects/rbac.ts';
import { secretType } from '../src/kube/objects/secret.ts';
import { everything, type TestHome, until } from './support/clusterset.ts';
import { key, MemberSet, membershipOf, stateOf } from './support/member-set.ts';

const members = new MemberSet();
let broker: TestHome;
let east: TestHome;
let west: TestHome;
let north: TestHome;

beforeAll(async () => {
  ({ broker, east, west, north } = await members.startMembers());
  await members.exportCheckout();
});
afterAll(() => members.stop());

describe('agents that stop and start', () => {
  test('agents: all restarted -> the revisions of the broker and of every home stay, leases aside', async () => {
    await until('nobody is behind', async () => (await members.at(east, 'status')).lines.join().includes('lag: none'));
    await pause(1_000);
    const homes = [broker, east, west, north];
    const before = await Promise.all(homes.map(({ client }) => everything(client)));
    for (const agent of members.agents.values()) expect(await agent.stop()).toBe(0);
    const leader = await broker.client.get<Lease>(leaseType, { namespace: 'prod-members', name: 'east' });
    expect(leader.spec?.holderIdentity ?? '').toBe('');
    for (const home of [east, west, north]) await members.startAgent(home);
    for (const agent of members.agents.values()) {
      await until('leading again', async () => (await stateOf(agent)) === 'leading');
      await until('all controllers have synced', () => agent.log().split('controller has synced').length > 7);
    }
    await pause(3_000);
    // The counted usage goes up and down with the leases.
    const without = (all: Awaited<typeof before>) =>
      all.map((objects) => [...objects].filter(([name]) => !/^(ResourceQuota|Heartbeat|LivenessReport) /.test(name)));
    expect(without(await Promise.all(homes.map(({ client }) => everything(client))))).toEqual(without(before));
  });

  test('agent: two of one cluster -> one waits, and takes over when the other stops [003-12]', async () => {
    const second = await members.set.startAgent(members.agentKubeconfigs.get('east')!);
    await until('it waits', async () => (await stateOf(second)) === 'standby');
    expect(await stateOf(members.agents.get('east')!)).toBe('leading');
    await members.agents.get('east')!.stop();
    await until('it takes over', async () => (await stateOf(second)) === 'leading');
    members.agents.set('east', second);
    expect(await importLine(west.client, key)).toContain('from east');
  });

  test('agent: its leader Lease is deleted at the broker -> created again, owned by the namespace of the member', async () => {
    const agent = members.agents.get('west')!;
    const ref = { namespace: 'prod-members', name: 'west.eu' };
    const owners = async () =>
      (await getOrUndefined<Lease>(broker.client, leaseType, ref))?.metadata.ownerReferences?.map(({ name }) => name);
    const namespace = memberNamespace('prod', 'west.eu');
    expect(await owners()).toEqual([namespace]);
    await broker.client.delete(leaseType, ref);
    await until('it is there again', async () => (await owners()) !== undefined);
    expect(await owners()).toEqual([namespace]);
    expect(await stateOf(agent)).toBe('leading');
    expect(agent.log().match(/leadership lost/g)).toBeNull();
  });

  test('broker init: a member that joined an earlier release -> may create its leader Lease too', async () => {
    const ref = { namespace: 'prod-members', name: memberRoleName('west.eu') };
    const rulesOf = async () => (await broker.client.get<KubernetesObject & { rules: object[] }>(roleType, ref)).rules;
    const rules = await rulesOf();
    await broker.client.patch(roleType, ref, { kind: 'merge', body: { rules: [] } });
    expect((await members.atBroker('init')).lines).toContain('updated rights of member west.eu');
    expect(await rulesOf()).toEqual(rules);
  });

  test('agent: its token is old -> renewed at the broker, kept at home, and the work goes on', async () => {
    await members.agents.get('east')!.stop();
    const before = await membershipOf(east);
    const old = Buffer.from('2020-01-01T00:00:00Z').toString('base64');
    const ref = { namespace: systemNamespace, name: membershipSecretName };
    await east.client.patch(secretType, ref, { kind: 'merge', body: { data: { 'token-issued-at': old } } });
    await members.startAgent(east);
    await until('renewed', async () => (await membershipOf(east)).token !== before.token);
    expect((await membershipOf(east)).tokenIssuedAt > before.tokenIssuedAt.slice(0, 4)).toBe(true);
    const ownLease = { namespace: 'prod-m-east', name: memberLeaseName };
    const { renewTime } = (await broker.client.get<Lease>(heartbeatType, ownLease)).spec!;
    await until(
      'it goes on',
      async () => (await broker.client.get<Lease>(heartbeatType, ownLease)).spec!.renewTime !== renewTime,
    );
  });
});

describe('everything goes at once', () => {
  test('agent: told to stop while its broker and its home go away -> it ends, cleanly', async () => {
    for (const round of [1, 2, 3]) {
      const lateBroker = await members.set.startHome(`late-broker-${round}`);
      const late = await members.set.startHome(`late-${round}`);
      await members.at(lateBroker, 'broker init');
      await members.at(late, `join --broker-kubeconfig ${lateBroker.kubeconfig} --cluster-id late`);
      const agent = await members.set.startAgent(await members.set.agentKubeconfig(late));
      await until('leading', async () => (await stateOf(agent)) === 'leading');
      await until('at work', () => agent.log().includes('controller has synced'));
      const [code] = await Promise.all([agent.stop(), lateBroker.stop(), late.stop()]);
      expect(code).toBe(0);
    }
  });
});
