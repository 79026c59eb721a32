// A clusterset of two clusters: east with a proxy for its imports, and north whose agent is a process beside its home.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { membershipSecretName } from '../../src/clusterset/membership/membership.ts';
import { leaderLeaseName, memberRoleName, membersNamespace } from '../../src/clusterset/rules/broker-layout.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { formatTime } from '../../src/kube/objects/conditions.ts';
import { leaseType } from '../../src/kube/objects/lease.ts';
import type { KubernetesObject } from '../../src/kube/objects/object.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { type PolicyRule, roleType } from '../../src/kube/objects/rbac.ts';
import { secretType } from '../../src/kube/objects/secret.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { takeRange } from '../../src/main/demo/range.ts';
import { makeNamespace, type } from '../support/clusterset.ts';
import type { RoleProcess } from '../support/roles.ts';
import type { Fault } from './fault.ts';
import { type Stage, world } from './stage.ts';

const clusterset = 'prod';
const hourMs = 3_600_000;
/** The alert goes by a share of them, and ends for a short token too. */
const tokenHours = 3;
/** The alert is about more than 30 s, and Kubernetes writes times in whole seconds. */
const slowMs = 34_000;

/** The agent of north does not run yet, and shop/clash is exported there. */
async function startClusters(stage: Stage) {
  const { clusterSet, ingress, release } = await takeRange(world);
  stage.onClose(release);
  const base = clusterSet.split('/')[0]!;
  const [brokerHome, northHome] = await Promise.all([stage.startHome('broker'), stage.startHome('north')]);
  const at = (kubeconfig: string) => (line: string) => type(`${line} --kubeconfig ${kubeconfig}`);
  const typeAt = {
    broker: at(brokerHome.kubeconfig),
    east: at(join(stage.folder, 'east', 'admin.kubeconfig')),
    north: at(northHome.kubeconfig),
  };
  const setRange = (bits: number) =>
    typeAt.broker(`broker init --clusterset ${clusterset} --clusterset-range ${base}/${bits}`);
  await setRange(29);
  const tokenFor = async (id: string) => {
    const { lines } = await typeAt.broker(`broker token ${id} --clusterset ${clusterset}`);
    const file = join(stage.folder, `${id}.token`);
    writeFileSync(file, lines.join('\n'));
    return file;
  };
  await stage.startUp('east', ['--join', await tokenFor('east'), '--namespace', 'shop']);
  const north = await stage.clientOf(northHome.kubeconfig);
  await makeNamespace(north, 'shop');
  await typeAt.north(`join --token-file ${await tokenFor('north')} --token-hours ${tokenHours}`);
  const clash = (port: number) => `register shop/clash --address ${ingress} --port http=${port}:80 --export`;
  await typeAt.north(clash(80));
  return {
    ...{ typeAt, setRange, clash, north, northHome, exportedMs: Date.now() },
    broker: await stage.clientOf(brokerHome.kubeconfig),
    east: await stage.clientOf(join(stage.folder, 'east', 'admin.kubeconfig')),
    startNorth: () => stage.startPart('agent-north', ['agent', '--kubeconfig', northHome.kubeconfig]),
  };
}

export async function clustersetFaults(stage: Stage): Promise<Fault[]> {
  const clusters = await startClusters(stage);
  const { typeAt, setRange, clash, broker, east, north, northHome, startNorth, exportedMs } = clusters;
  let agentNorth: RoleProcess;
  return [
    {
      what: '10 services in a range of 6 addresses, which is widened later',
      alerts: { AddressPoolNearlyFull: 'agent-east', ImportsNotReady: 'agent-east' },
      make: () => exportServices(east, 'some', 10),
      mend: () => setRange(20),
    },
    foreignLeader(broker),
    {
      what: 'an agent does not run for half a minute after an export, which is imported late',
      alerts: { SlowPropagation: '' },
      make: async () => {
        await pause(Math.max(0, exportedMs + slowMs - Date.now()));
        agentNorth = await startNorth();
      },
      // It ends by itself: later exports are fast, or there are none.
      mend: async () => {},
    },
    {
      what: 'two clusters export a service with different ports, then one does',
      alerts: { ExportConflict: 'agent-north' },
      make: () => typeAt.east(clash(81)),
      mend: () => typeAt.east('unexport shop/clash'),
    },
    {
      what: 'a home hangs while 160 services arrive, then goes on',
      alerts: { QueueStuck: 'agent-north' },
      make: async () => {
        northHome.child.kill('SIGSTOP');
        await exportServices(east, 'many', 160);
      },
      mend: async () => northHome.child.kill('SIGCONT'),
    },
    oldToken({
      ...{ broker, north },
      restart: async (whileStopped) => {
        await agentNorth.stop();
        await whileStopped();
        await startNorth();
      },
    }),
  ];
}

async function exportServices(home: Client, prefix: string, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const metadata = { namespace: 'shop', name: `${prefix}-${index}` };
    const spec = { ports: [{ port: 80 }] };
    await home.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata, spec } as never);
    const { group, version, kind } = serviceExportType;
    await home.create(serviceExportType, { apiVersion: `${group}/${version}`, kind, metadata });
  }
}

/** The Lease is as an agent leaves it that was cut off with a long promise. */
function foreignLeader(broker: Client): Fault {
  const lease = { namespace: membersNamespace(clusterset), name: leaderLeaseName('east') };
  const hold = (holderIdentity: string, leaseDurationSeconds: number) =>
    broker.patch(leaseType, lease, { kind: 'merge', body: { spec: { holderIdentity, leaseDurationSeconds } } });
  return {
    what: 'an agent that is gone holds the lease of leaders, then it is given up',
    alerts: { NoLeader: 'east' },
    make: () => hold('agent-that-is-gone', 3600),
    mend: () => hold('', 1),
  };
}

interface Member {
  readonly broker: Client;
  readonly north: Client;
  restart(whileStopped: () => Promise<unknown>): Promise<void>;
}

/** A member that was off for long has such a token. It lives longer than it says here, so the clock need not be changed. */
function oldToken({ broker, north, restart }: Member): Fault {
  const ref = { namespace: membersNamespace(clusterset), name: memberRoleName('north') };
  const secret = { namespace: systemNamespace, name: membershipSecretName };
  const time = (hours: number) => Buffer.from(formatTime(Date.now() + hours * hourMs)).toString('base64');
  const grant = (rules: unknown) => broker.patch(roleType, ref, { kind: 'merge', body: { rules } });
  let rules: readonly PolicyRule[] = [];
  return {
    what: 'a token of 3 hours with half an hour left may not be renewed, then it may',
    alerts: { TokenEnds: 'agent-north' },
    make: async () => {
      ({ rules } = await broker.get<KubernetesObject & { rules: PolicyRule[] }>(roleType, ref));
      await grant(rules.filter(({ resources }) => !resources?.includes('serviceaccounts/token')));
      const data = { 'token-issued-at': time(0.5 - tokenHours), 'token-expires-at': time(0.5) };
      await restart(() => north.patch(secretType, secret, { kind: 'merge', body: { data } }));
    },
    mend: () => grant(rules),
  };
}
