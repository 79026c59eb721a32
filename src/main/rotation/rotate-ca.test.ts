// Who would be cut off by a step, and that the step waits for them or is refused.

import { expect, test } from 'vitest';
import { memberNamespace, SimClusterSet, setName } from '../../../sim/clusterset.ts';
import { silentLog } from '../../base/log.ts';
import { createMetrics } from '../../base/metrics.ts';
import { createAgent } from '../../clusterset/agent/agent.ts';
import { memberRecord } from '../../clusterset/membership/member-record.ts';
import { membershipSecret } from '../../clusterset/membership/membership.ts';
import { authorityFingerprints, trustAnnotations } from '../../clusterset/rules/leases/trusted-authorities.ts';
import { configMapType } from '../../kube/objects/config-map.ts';
import { formatMicroTime, leaseType } from '../../kube/objects/lease.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { partLabel } from '../../kube/objects/part-lease.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { startAgentRole } from '../agent/role.ts';
import { refuseToLose, withoutTrust } from './rotate-ca.ts';

const pem = (text: string) =>
  `-----BEGIN CERTIFICATE-----\n${Buffer.from(text).toString('base64')}\n-----END CERTIFICATE-----\n`;
const both = pem('old') + pem('new');
const wanted = authorityFingerprints(both);
const noRanges = {
  homeUid: 'u',
  joinedAt: '2026-01-01T00:00:00Z',
  region: '',
  zone: '',
  podRanges: [],
  serviceRanges: [],
};

/** East's agent trusts both authorities, west's the old one alone; south was invited and has not joined. */
async function start() {
  const set = new SimClusterSet({ clusters: ['east', 'west', 'south'] });
  await set.time.settle(set.start({ agents: [] }));
  const { admin } = set.broker;
  for (const id of ['east', 'west'])
    await admin.create(configMapType, memberRecord(memberNamespace(id), noRanges).object);
  const startAgent = (id: string, trustedAuthorities: string) =>
    set.startAgent(id, (options) => createAgent({ ...options, trustedAuthorities }));
  startAgent('east', both);
  startAgent('west', pem('old'));
  await set.time.advance(10_000);
  const { clock } = set.simulation.world('admin');
  return { set, admin, startAgent, clock, lost: () => withoutTrust(admin, wanted, clock.wallMs()) };
}

test('rotation: an agent that trusts the old authority alone -> named; started with both -> nobody is', async () => {
  const { set, startAgent, lost } = await start();
  expect(await lost()).toEqual(['cluster west']);
  await set.stopAgent('west');
  startAgent('west', both);
  await set.time.advance(30_000);
  expect(await lost()).toEqual([]);
});

test('rotation: an authority of a federation that has not reported the new one -> named; one that has -> not', async () => {
  const { admin, clock, lost } = await start();
  for (const [name, trusted] of [
    ['behind', pem('old')],
    ['there', both],
  ] as const)
    await admin.create(leaseType, {
      ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
      metadata: {
        ...{ name, namespace: systemNamespace, labels: { [partLabel]: 'authority' } },
        annotations: trustAnnotations(trusted),
      },
      spec: { leaseDurationSeconds: 30, renewTime: formatMicroTime(clock.wallMs()) },
    });
  expect(await lost()).toEqual(['cluster west', 'authority behind']);
});

test('rotation: switch, one would be cut off -> refused with its name; with --wait -> waits until nobody would be', async () => {
  const set = new SimClusterSet({ clusters: [] });
  const world = set.simulation.world('admin');
  const deps = { world, host: undefined as never, print: () => {} };
  let looks = 0;
  const look = async () => {
    looks += 1;
    return looks > 10 ? { done: 'nobody is cut off' } : { waiting: 'cluster west to report trust' };
  };
  const refused = refuseToLose('switch', { deps, look, flags: { timeout: '60' } });
  await expect(refused).rejects.toThrow(
    /rotate-ca switch: would cut off members: waiting for cluster west .* give --wait to wait for them, or --force/,
  );
  await set.time.settle(refuseToLose('switch', { deps, look, flags: { wait: true, timeout: '60' } }));
  expect(looks).toBeGreaterThan(10);
});

test('rotation: an agent as its process runs it -> it reports the authorities that its membership holds', async () => {
  const set = new SimClusterSet({ clusters: ['east'] });
  await set.time.settle(set.start({ agents: [] }));
  const [home, namespace] = [set.home('east'), memberNamespace('east')];
  await set.broker.admin.create(configMapType, memberRecord(namespace, noRanges).object);
  const { object } = membershipSecret({
    ...{ clusterset: setName, clusterId: 'east', namespace, accountNamespace: namespace, accountName: 'east' },
    ...{ server: set.broker.url, certificateAuthority: both, token: 't', tokenIssuedAt: '', tokenExpiresAt: '' },
  });
  await home.admin.create(secretType, object);
  const world = set.simulation.world('agent-east');
  const brokerAccess = { server: set.broker.url, bearerToken: async () => 'agent-east' };
  const role = startAgentRole({
    ...{ world, log: silentLog, metrics: createMetrics(), home: home.clientOf(world), brokerAccess },
  });
  await set.time.advance(30_000);
  expect(await withoutTrust(set.broker.admin, wanted, world.clock.wallMs())).toEqual([]);
  await set.time.settle(role.stop());
});
