// The leader Lease of a member with the member's own rights at the broker, by real access control.

import { expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { createLeaderLease } from '../clusterset/agent/leader-lease.ts';
import { memberObjects } from '../clusterset/membership/broker-objects.ts';
import { leaderLeaseName, memberNamespace, membersNamespace } from '../clusterset/rules/broker-layout.ts';
import { namespace, openHome } from '../home/security/testing/home.ts';
import { createClient } from '../kube/client/client.ts';
import { standForLeader } from '../kube/controller/leader.ts';
import { leaseType } from '../kube/objects/lease.ts';
import { roleBindingType, roleType, serviceAccountType } from '../kube/objects/rbac.ts';

const accounts = membersNamespace('prod');
const leases = `/apis/coordination.k8s.io/v1/namespaces/${accounts}/leases`;
const ofSecurity = new Set([leaseType, roleType, roleBindingType, serviceAccountType]);

/** A broker with the members east and west; kinds from definitions are left out. */
async function brokerWithMembers() {
  const home = await openHome();
  const ids = ['east', 'west'];
  const names = ['prod', accounts, ...ids.map((id) => memberNamespace('prod', id))];
  const objects = ids.flatMap((id) => memberObjects({ clusterset: 'prod', id, spec: {} }));
  const known = objects.filter(({ type }) => ofSecurity.has(type)).map(({ object }) => object);
  await home.given(...names.map(namespace), ...known);
  return home;
}

const lease = (name: string) => ({ metadata: { name }, spec: { holderIdentity: 'x' } });

test('leader: its Lease is deleted at the broker -> created again with the rights of the member', async () => {
  const { simulation, handle, admin, token } = await brokerWithMembers();
  const world = simulation.world('east');
  simulation.network.listen('https://broker', handle);
  const bearer = await token(`${accounts}/east`);
  const own = memberNamespace('prod', 'east');
  const access = { server: 'https://broker', bearerToken: async () => bearer };
  const client = createClient(world.network.http(access), { world, userAgent: 'test' });
  const candidate = standForLeader({
    ...{ client, world, log: silentLog },
    ...{ namespace: accounts, name: leaderLeaseName('east'), identity: 'agent' },
    create: (lease, limit) => createLeaderLease(client, own, lease, limit),
    whileLeading: (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
  });
  await simulation.time.until(() => candidate.isLeader(), { withinMs: 5_000 });
  await admin(`DELETE ${leases}/east`);
  await simulation.time.advance(60_000);
  expect([candidate.isLeader(), candidate.problem()]).toEqual([true, '']);
  const { metadata, spec } = (await admin(`GET ${leases}/east`)).body;
  expect([spec.holderIdentity, metadata.ownerReferences[0].name]).toEqual(['agent', own]);
});

test('member: creates or deletes any other Lease beside the accounts -> 403', async () => {
  const { admin, bearer, token } = await brokerWithMembers();
  const east = bearer(await token(`${accounts}/east`));
  for (const name of ['east', 'west']) await admin(`DELETE ${leases}/${name}`);
  const status = async (line: string, body?: object) => (await east(line, body)).status;
  expect(await status(`PUT ${leases}/west`, lease('west'))).toBe(403);
  expect(await status(`PUT ${leases}/new`, lease('new'))).toBe(403);
  expect(await status(`POST ${leases}`, lease('west'))).toBe(403);
  expect(await status(`POST ${leases}`, lease('east'))).toBe(403);
  expect(await status(`PUT ${leases}/east`, lease('east'))).toBe(201);
  expect(await status(`DELETE ${leases}/east`)).toBe(403);
});
