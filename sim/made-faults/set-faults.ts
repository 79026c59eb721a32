// Faults of homes, broker, agents, exports and address ranges.

import { addressClaimType } from '../../src/addresses/address-claim.ts';
import { clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { clusterProfileType } from '../../src/clusterset/kinds/cluster-profile.ts';
import { clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { serviceExportPolicyType } from '../../src/clusterset/kinds/service-export-policy.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { federationType } from '../../src/federation/kinds/federation.ts';
import { apply, replaceWith } from '../../src/kube/client/apply.ts';
import { type Lease, leaseType } from '../../src/kube/objects/lease.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { createNamespace, type SimClusterSet, setName } from '../clusterset.ts';
import { exportService, service, serviceExport } from '../manifests.ts';
import { type MadeFault, objectThere, refusing, silentPart, thenWait } from './fault.ts';
import { partLease, ref, type Scene } from './scene.ts';

const exported = { at: 'home', type: serviceExportType, ref } as const;
const imported = { at: 'home', type: serviceImportType, ref } as const;

export const setFaults: readonly MadeFault[] = [
  {
    fault: 'the home of the cluster is away',
    code: 'PTL0101',
    says: /https:\/\/west: /,
    doctorExit: 6,
    statusSays: /https:\/\/west.*is the server running/,
    make: async ({ set }) => set.home('west').kill(),
    mend: async ({ set }) => set.home('west').start(),
  },
  {
    fault: 'the disk of the home is full',
    code: 'PTL0102',
    says: /the disk is full/,
    doctorExit: 7,
    make: async ({ homes }) => {
      homes.readyz = '[+]ping ok\n[-]store failed: the store takes no writes: the disk is full\nreadyz check failed\n';
    },
    mend: async ({ homes }) => {
      delete homes.readyz;
    },
  },
  {
    fault: 'the home has taken no snapshot for two days',
    code: 'PTL0104',
    says: /the last good one is of 2026-01-01T00:00:00Z; the disk is full/,
    doctorExit: 0,
    make: async ({ homes }) => {
      homes.readyz =
        '[+]ping ok\n[+]store ok\n[!]snapshots: the last good one is of 2026-01-01T00:00:00Z; the disk is full\nreadyz check passed\n';
    },
    mend: async ({ homes }) => {
      delete homes.readyz;
    },
  },
  {
    fault: 'the person who looks has too few rights',
    code: 'PTL0103',
    says: /you may not read leases in portolan-system/,
    doctorExit: 8,
    ...refusing('west', { path: `${systemNamespace}/leases`, from: 'admin', code: 403 }),
  },
  {
    fault: 'the agent may not write imports any more',
    code: 'PTL0304',
    says: /shop\/new: it is behind the broker here/,
    doctorExit: 7,
    make: async (scene) => {
      await refusing('west', { method: 'POST', path: '/serviceimports', from: 'agent-west', code: 403 }).make(scene);
      await exportService(scene.set.home('east').admin, 'shop/new', { endpoints: ['10.1.0.9'] });
      await scene.set.time.advance(5_000);
    },
    mend: async ({ faults, set }) => {
      faults.splice(0);
      await set.time.advance(600_000);
    },
  },
  {
    fault: 'the broker is away',
    code: 'PTL0201',
    says: /it does not answer/,
    doctorExit: 7,
    statusExit: 6,
    conditions: { of: exported, are: /Ready=Unknown BrokerAway/ },
    make: async ({ set }) => {
      set.broker.kill();
      await set.time.advance(15_000);
    },
    mend: async ({ set }) => {
      await set.broker.start();
      await set.time.advance(60_000);
    },
  },
  {
    fault: 'the agent of another cluster is dead',
    code: 'PTL0202',
    says: /agent of cluster east: (it has not renewed its lease for \d+s|its lease has run out)/,
    doctorExit: 7,
    make: async ({ set }) => {
      set.killAgent('east');
      await set.time.advance(60_000);
    },
    mend: async ({ set }) => {
      set.startAgent('east');
      await set.time.advance(120_000);
    },
  },
  {
    fault: 'the home of another cluster does not answer its agent',
    code: 'PTL0207',
    says: /home of cluster east: it does not answer the agent there/,
    doctorExit: 7,
    make: async ({ set }) => {
      set.simulation.network.setLink('agent-east', set.home('east').url, 'silent');
      await set.time.advance(15_000);
    },
    mend: async ({ set }) => {
      set.simulation.network.setLink('agent-east', set.home('east').url, 'up');
      await set.time.advance(60_000);
    },
  },
  {
    fault: 'another cluster manager has a profile under the name of a member',
    code: 'PTL0208',
    says: /inventory of clusterset prod: cluster east: its ClusterProfile belongs to cluster manager other-fleet/,
    doctorExit: 0,
    make: async ({ set }) => {
      const { admin } = set.broker;
      const spec = { clusterManager: { name: 'other-fleet' } };
      const metadata = { name: 'east', namespace: setName };
      const { group, version, kind } = clusterProfileType;
      await admin.create(clusterProfileType, { apiVersion: `${group}/${version}`, kind, metadata, spec });
      await nameWriters(set, ['west']);
    },
    mend: async ({ set }) => {
      await set.broker.admin.delete(clusterProfileType, { namespace: setName, name: 'east' });
      await set.time.advance(5_000);
      await nameWriters(set, []);
    },
  },
  {
    fault: 'the member that keeps the cluster inventory is dead',
    code: 'PTL0208',
    says: /inventory of clusterset prod: nobody keeps it: none of north is a member that lives/,
    doctorExit: 0,
    make: ({ set }) => nameWriters(set, ['north']),
    mend: ({ set }) => nameWriters(set, []),
  },
  {
    fault: 'the agent of this cluster is dead',
    code: 'PTL0202',
    says: /agent of cluster west: it has not renewed its lease for \d+s/,
    doctorExit: 7,
    conditions: { of: exported, note: 'written by the agent, so as old as its last report' },
    make: async ({ set }) => {
      set.killAgent('west');
      await set.time.advance(60_000);
    },
    mend: async ({ set }) => {
      set.startAgent('west');
      await set.time.advance(120_000);
    },
  },
  {
    fault: 'a second agent process is silent',
    code: 'PTL0202',
    says: /it has not reported/,
    doctorExit: 7,
    ...silentPart('agent'),
  },
  {
    fault: 'a cluster comes and goes',
    code: 'PTL0203',
    says: /it has come back 2 times lately and is held down until /,
    doctorExit: 0,
    statusExit: 7,
    make: async ({ set }) => {
      for (let round = 0; round < 2; round += 1) {
        set.killAgent('east');
        await set.time.advance(60_000);
        set.startAgent('east');
        await set.time.advance(12_000);
      }
    },
    mend: async ({ set }) => set.time.advance(300_000),
  },
  {
    fault: 'the cluster was removed at the broker',
    code: 'PTL0204',
    says: /the broker .* refuses them/,
    doctorExit: 7,
    statusExit: 5,
    statusSays:
      /was removed from clusterset prod, or its credentials were revoked .* run portolan leave --offline, then join/,
    ...refusing('broker', { path: '/', from: 'agent-west', code: 401 }),
  },
  {
    fault: 'the broker was restored from a backup',
    code: 'PTL0205',
    says: /broker: cluster (east|west) found its lease at the broker older than it had left it/,
    doctorExit: 0,
    make: async ({ set }) => {
      const copy = set.broker.backup();
      await set.time.advance(60_000);
      await set.broker.restore(copy);
      await set.time.advance(90_000);
    },
    mend: async ({ set }) => set.time.advance(3_700_000),
  },
  {
    fault: 'an export without its Service',
    code: 'PTL0301',
    says: /there is no Service of that name/,
    doctorExit: 7,
    conditions: { of: { ...exported, ref: { namespace: 'shop', name: 'ghost' } }, are: /Valid=False NoService/ },
    make: async ({ desk, set }) => {
      await desk.home.create(serviceExportType, serviceExport('shop/ghost'));
      await set.time.advance(10_000);
    },
    mend: async ({ desk, set }) => {
      await desk.home.create(serviceType, service('shop/ghost'));
      await set.time.advance(10_000);
    },
  },
  {
    fault: 'two clusters export different ports',
    code: 'PTL0302',
    says: /PortConflict/,
    doctorExit: 0,
    conditions: { of: exported, are: /Conflict=True PortConflict/ },
    make: (scene) => changePort(scene, 8080),
    mend: (scene) => changePort(scene, 80),
  },
  {
    fault: 'an export to a cluster that does not exist',
    code: 'PTL0303',
    says: /it is limited to north, which the clusterset does not have/,
    doctorExit: 0,
    make: (scene) => limit(scene, 'north'),
    mend: (scene) => limit(scene, null),
  },
  {
    fault: 'a ServiceExportPolicy that selects nothing',
    code: 'PTL0303',
    says: /it selects no Service/,
    doctorExit: 0,
    ...thenWait(
      objectThere('home', serviceExportPolicyType, {
        metadata: { name: 'all' },
        spec: { namespaces: ['shop'], serviceSelector: { matchLabels: { a: 'b' } } },
      }),
    ),
  },
  {
    fault: 'a new service does not arrive',
    code: 'PTL0304',
    says: /it is behind the broker here/,
    doctorExit: 7,
    make: async ({ set }) => {
      set.killAgent('west');
      await exportService(set.home('east').admin, 'shop/new', { endpoints: ['10.1.0.9'] });
      await set.time.advance(5_000);
    },
    mend: async ({ set }) => {
      set.startAgent('west');
      await set.time.advance(90_000);
    },
  },
  {
    fault: 'an exported service has no ready endpoint',
    code: 'PTL0305',
    says: /it is exported and has no ready endpoint here/,
    doctorExit: 0,
    conditions: { of: { ...exported, ref: { namespace: 'shop', name: 'idle' } }, are: /Ready=False NoReadyEndpoints/ },
    make: async ({ set, desk }) => {
      await desk.home.create(serviceType, service('shop/idle'));
      await desk.home.create(serviceExportType, serviceExport('shop/idle'));
      await set.time.advance(10_000);
    },
    mend: async ({ set, desk }) => {
      await desk.home.delete(serviceExportType, { namespace: 'shop', name: 'idle' });
      await set.time.advance(10_000);
    },
  },
  {
    fault: 'the ranges of two clusters overlap',
    code: 'PTL0401',
    says: /10\.7\.0\.0\/16 .* overlaps 10\.7\.1\.0\/24/,
    doctorExit: 7,
    make: ({ set }) => ranges(set, ['10.7.0.0/16', '10.1.0.0/16'], ['10.7.1.0/24', '10.2.0.0/16']),
    mend: ({ set }) => ranges(set, ['10.7.0.0/16', '10.1.0.0/16'], ['10.8.1.0/24', '10.2.0.0/16']),
  },
  {
    fault: 'a member has no allowed ranges',
    code: 'PTL0404',
    says: /1 of 2 clusters: no allowedRanges: east reported none/,
    doctorExit: 0,
    // For information: status shows no more than before.
    statusSays: /^lag: none/,
    make: ({ set }) => ranges(set, [], ['10.2.0.0/16']),
    mend: ({ set }) => ranges(set, ['10.1.0.0/16'], ['10.2.0.0/16']),
  },
  {
    fault: 'a range of virtual addresses is nearly used up',
    code: 'PTL0402',
    says: /2 of 2 addresses are taken/,
    doctorExit: 0,
    make: async ({ set, desk }) => {
      const body = { spec: { addressRanges: { peers: ['241.0.0.0/31'] } } };
      await set.broker.admin.patch(clusterSetType, { namespace: setName, name: setName }, { kind: 'merge', body });
      for (const address of ['241.0.0.0', '241.0.0.1'])
        await desk.home.create(addressClaimType, {
          apiVersion: 'portolan.dev/v1alpha1',
          kind: 'AddressClaim',
          metadata: { name: address },
          spec: { address, owner: { kind: 'PeerService', namespace: 'portolan-system', name: 'x' } },
        } as unknown as AnyObject);
    },
    mend: async ({ desk }) => void (await desk.home.delete(addressClaimType, { name: '241.0.0.0' })),
  },
  {
    fault: 'an import of another namespace names the address of a service',
    code: 'PTL0403',
    says: /ServiceImport attic\/thief: 243\.\d+\.\d+\.\d+ belongs to ServiceImport shop\/checkout, as its AddressClaim says/,
    doctorExit: 7,
    conditions: { of: imported, are: /AddressConflict=True NamedByOthers/ },
    make: async (scene) => {
      const { set, desk } = scene;
      await addressesFrom(scene, 'allocate');
      await createNamespace(set.home('west'), 'attic');
      const { spec } = await desk.home.get<ServiceImport>(serviceImportType, ref);
      await desk.home.create(serviceImportType, {
        apiVersion: 'multicluster.x-k8s.io/v1beta1',
        kind: 'ServiceImport',
        metadata: { namespace: 'attic', name: 'thief' },
        spec: { type: 'ClusterSetIP', ips: spec.ips, ports: [{ port: 80 }] },
      } as AnyObject);
      await set.time.advance(10_000);
    },
    mend: async (scene) => {
      const { set, desk } = scene;
      await desk.home.delete(serviceImportType, { namespace: 'attic', name: 'thief' });
      await addressesFrom(scene, 'derived');
      await set.time.advance(10_000);
    },
  },
  {
    fault: 'nothing carries the addresses of imports',
    code: 'PTL0903',
    says: /ServiceImport shop\/checkout: NotCarried: it has an address that nothing in this cluster serves/,
    doctorExit: 0,
    conditions: { of: imported, are: /Ready=False NotCarried/ },
    make: (scene) => addressesFrom(scene, 'allocate'),
    mend: (scene) => addressesFrom(scene, 'derived'),
  },
  {
    fault: 'a federated service has no address in its own cluster',
    code: 'PTL0507',
    says: /Service shop\/checkout: federation world has no address of it for clients here/,
    doctorExit: 7,
    make: async (scene) => {
      await objectThere(
        'broker',
        federationType,
        { metadata: { name: 'world', namespace: setName }, spec: { nameservers: ['10.0.0.1:53'] } },
        { conditions: [] },
      ).make(scene);
      const { set } = scene;
      set.killAgent('west');
      const record = { namespace: `${setName}-m-west`, name: 'checkout.shop' };
      const body = { spec: { clusterIPs: [], localIPs: [] } };
      await set.broker.admin.patch(serviceShardType, record, { kind: 'merge', body });
    },
    mend: async ({ set }) => {
      set.startAgent('west');
      await set.time.advance(30_000);
    },
  },
  {
    fault: 'the proxy is gone',
    code: 'PTL0902',
    says: /it has not reported for/,
    doctorExit: 7,
    conditions: { of: imported, are: /Ready=False NotCarried/ },
    make: async (scene) => {
      await addressesFrom(scene, 'allocate');
      await thenWait(silentPart('proxy')).make(scene);
    },
    mend: async (scene) => {
      const lease = partLease(scene, 'proxy', { ageMs: 0 });
      const spec = { ...lease.spec, leaseDurationSeconds: 3600 };
      await apply<Lease>({
        client: scene.desk.home,
        type: leaseType,
        present: undefined,
        change: replaceWith<Lease>({ ...lease, spec }),
        onConflict: 'retry',
      });
      await scene.set.time.advance(20_000);
    },
  },
  {
    fault: 'another member lies in another network and has no gateway',
    code: 'PTL0905',
    says: /cluster east: it is reached not at all, it is in network aws: no gateway published/,
    doctorExit: 7,
    conditions: { of: imported, are: /ClustersReached=False NotAllReached/ },
    make: (scene) => eastIn(scene, 'aws'),
    mend: (scene) => eastIn(scene, null),
  },
];

async function eastIn({ set }: Scene, network: string | null): Promise<void> {
  const east = { namespace: setName, name: 'east' };
  await set.broker.admin.patch(clusterType, east, { kind: 'merge', body: { spec: { network } } });
  await set.time.advance(20_000);
}

async function addressesFrom({ set }: Scene, clusterSetIP: 'allocate' | 'derived'): Promise<void> {
  const west = { namespace: setName, name: 'west' };
  await set.broker.admin.patch(clusterType, west, { kind: 'merge', body: { spec: { clusterSetIP } } });
  await set.time.advance(20_000);
}

async function changePort({ set, desk }: Scene, port: number): Promise<void> {
  const body = { spec: { ports: [{ name: 'http', port }] } };
  await desk.home.patch(serviceType, ref, { kind: 'merge', body });
  await set.time.advance(20_000);
}

async function limit({ set, desk }: Scene, to: string | null): Promise<void> {
  const body = { metadata: { annotations: { 'portolan.dev/export-to': to } } };
  await desk.home.patch(serviceExportType, ref, { kind: 'merge', body });
  await set.time.advance(20_000);
}

async function ranges(set: Scene['set'], east: string[], west: string[]): Promise<void> {
  for (const [name, allowedRanges] of Object.entries({ east, west })) {
    const body = { spec: { allowedRanges } };
    await set.broker.admin.patch(clusterType, { namespace: setName, name }, { kind: 'merge', body });
  }
  await set.time.advance(20_000);
}

/** Members that keep the ClusterProfiles. */
async function nameWriters(set: SimClusterSet, writers: string[]): Promise<void> {
  const patch = { kind: 'merge', body: { spec: { inventory: { writers } } } } as const;
  await set.broker.admin.patch(clusterSetType, { namespace: setName, name: setName }, patch);
  await set.time.advance(5_000);
}
