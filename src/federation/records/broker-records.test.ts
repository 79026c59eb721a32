import { describe, expect, test } from 'vitest';
import { SimHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { FederationTable } from '../../catalog/federation/federation-table.ts';
import { NameTable } from '../../catalog/names/name-table.ts';
import { clusterType } from '../../clusterset/kinds/cluster.ts';
import { clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { heartbeatType } from '../../clusterset/kinds/heartbeat.ts';
import { serviceShardType } from '../../clusterset/kinds/service-shard.ts';
import { memberLeaseName } from '../../clusterset/rules/broker-layout.ts';
import { createClient } from '../../kube/client/client.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { federationType } from '../kinds/federation.ts';
import { FederationAttachment } from './broker-records.ts';

const key = '/myfederation/shop/web';

async function setUp() {
  const watches = new Set<string>();
  /** Kinds that the authority may not read. */
  const denied = new Set<string>();
  /** Kinds that the authority asked for. */
  const requests: string[] = [];
  const sim = new Simulation({ seed: 1 });
  const broker = new SimHome({
    simulation: sim,
    name: 'broker',
    serviceRanges: ['10.96.0.0/16'],
    mayDo: (user, { resource }) => user !== 'dns' || !denied.has(resource),
    onRequest: (user, { verb, resource, namespace }) => {
      if (verb === 'watch') watches.add(`${resource} ${namespace}`);
      if (user === 'dns') requests.push(resource);
    },
  });
  await broker.start();
  const { admin } = broker;
  const world = sim.world('authority');
  const client = createClient(world.network.http({ server: broker.url, bearerToken: async () => 'dns' }), {
    world,
    userAgent: 'dns',
  });
  const object = (apiVersion: string, kind: string, namespace: string | undefined, name: string, rest: object = {}) =>
    ({ apiVersion, kind, metadata: { name, ...(namespace ? { namespace } : {}) }, ...rest }) as AnyObject;
  const portolan = 'portolan.dev/v1alpha1';
  await admin.create(namespaceType, object('v1', 'Namespace', undefined, 'prod'));
  await admin.create(clusterSetType, object(portolan, 'ClusterSet', 'prod', 'prod', { spec: {} }));
  const join = async (id: string, place: { zone: string; region: string }) => {
    const namespace = `prod-m-${id}`;
    await admin.create(namespaceType, object('v1', 'Namespace', undefined, namespace));
    await admin.create(clusterType, object(portolan, 'Cluster', 'prod', id, { spec: { namespace, ...place } }));
    const spec = { holderIdentity: id };
    await admin.create(heartbeatType, object(portolan, 'Heartbeat', namespace, memberLeaseName, { spec }));
  };
  const share = (id: string, n: number, more: object = {}) =>
    admin.create(
      serviceShardType,
      object(portolan, 'ServiceShard', `prod-m-${id}`, 'web.shop', {
        spec: {
          type: 'ClusterSetIP',
          exportedAt: '2026-01-01T00:00:00Z',
          ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
          clusterIPs: [`10.0.0.${n}`],
          loadBalancer: [{ ip: `104.0.0.${n}` }],
          readyEndpoints: 1,
          ...more,
        },
      }),
    );
  const renew = async (id: string) => {
    const lease = await admin.get(heartbeatType, { namespace: `prod-m-${id}`, name: memberLeaseName });
    const spec = { holderIdentity: id, leaseDurationSeconds: 1 + Math.floor(sim.time.nowMs / 1000) };
    await admin.update(heartbeatType, { ...lease, spec } as AnyObject);
  };
  await admin.create(
    federationType,
    object(portolan, 'Federation', 'prod', 'myfederation', { spec: { nameservers: ['10.0.0.53'] } }),
  );
  await join('east', { zone: 'a', region: 'eu' });
  await join('west', { zone: 'b', region: 'eu' });
  await share('east', 1);
  await share('west', 2);
  const table = new FederationTable({ table: new NameTable({ serial: 1 }) });
  const attachment = new FederationAttachment({
    sink: table,
    federation: 'myfederation',
    broker: client,
    clusterset: 'prod',
    world,
    log: silentLog,
  });
  let isSynced = false;
  void attachment.whenSynced().then(() => (isSynced = true));
  await sim.time.until(() => isSynced, { withinMs: 10_000 });
  const healthy = () =>
    table
      .shardsOf(key)
      .filter(({ isReady }) => isReady)
      .map(({ cluster }) => cluster);
  return { sim, broker, admin, table, attachment, healthy, renew, share, watches, denied, requests };
}

describe('federation attached to a broker', () => {
  test('exported shards of every member -> records with addresses, place and health [001-25]', async () => {
    const { table, attachment } = await setUp();
    expect(table.shardsOf(key)).toMatchObject([
      { cluster: 'east', clusterIPs: ['10.0.0.1'], externalIPs: ['104.0.0.1'], zone: 'a', region: 'eu', isReady: true },
      { cluster: 'west', clusterIPs: ['10.0.0.2'], externalIPs: ['104.0.0.2'], zone: 'b', region: 'eu', isReady: true },
    ]);
    attachment.stop();
  });

  test('cluster IPs and load balancers in special, virtual or foreign ranges -> left out; a record that is not allowed -> gone', async () => {
    const { sim, admin, table, attachment } = await setUp();
    const ref = { namespace: 'prod-m-east', name: 'web.shop' };
    const body = {
      spec: {
        clusterIPs: ['169.254.169.254', '10.0.0.1'],
        loadBalancer: [{ ip: '127.0.0.1' }, { ip: '243.0.0.7' }, { ip: '104.0.0.1' }, { ip: '64:ff9b::a9fe:a9fe' }],
      },
    };
    await admin.patch(serviceShardType, ref, { kind: 'merge', body });
    await sim.time.advance(2000);
    const ofEast = () => table.shardsOf(key).find(({ cluster }) => cluster === 'east');
    expect(ofEast()).toMatchObject({ clusterIPs: ['10.0.0.1'], externalIPs: ['104.0.0.1'] });
    const limit = (spec: object) =>
      admin.patch(clusterType, { namespace: 'prod', name: 'east' }, { kind: 'merge', body: { spec } });
    await limit({ allowedRanges: ['10.0.0.0/24'] });
    await sim.time.advance(2000);
    expect(ofEast()).toMatchObject({ clusterIPs: ['10.0.0.1'], externalIPs: [] });
    await limit({ mayExport: ['other'] });
    await sim.time.advance(2000);
    expect(ofEast()).toBeUndefined();
    attachment.stop();
  });

  test('a load balancer with a name -> the record has the address rules of its cluster for whoever looks the name up', async () => {
    const { sim, admin, table, attachment } = await setUp();
    const body = { spec: { loadBalancer: [{ hostname: 'lb.cloud.example' }] } };
    await admin.patch(serviceShardType, { namespace: 'prod-m-east', name: 'web.shop' }, { kind: 'merge', body });
    const spec = { allowedRanges: ['203.0.113.0/24'] };
    await admin.patch(clusterType, { namespace: 'prod', name: 'east' }, { kind: 'merge', body: { spec } });
    await sim.time.advance(2000);
    expect(table.shardsOf(key).find(({ cluster }) => cluster === 'east')).toMatchObject({
      hostnames: ['lb.cloud.example'],
      hostnameRules: {
        allowedRanges: ['203.0.113.0/24'],
        virtualRanges: expect.arrayContaining(['243.0.0.0/12', 'fd70:6f72:74f3::/64']),
      },
    });
    attachment.stop();
  });

  test('a cluster whose addresses others reach by a translation -> its own clients get its own cluster IP', async () => {
    const { sim, admin, table, attachment } = await setUp();
    const shard = { spec: { clusterIPs: ['100.64.0.7'] } };
    await admin.patch(serviceShardType, { namespace: 'prod-m-east', name: 'web.shop' }, { kind: 'merge', body: shard });
    const spec = {
      translations: [{ from: '10.1.0.0/16', to: '100.64.0.0/16' }],
      allowedRanges: ['100.64.0.0/16', '104.0.0.0/24'],
    };
    await admin.patch(clusterType, { namespace: 'prod', name: 'east' }, { kind: 'merge', body: { spec } });
    await sim.time.advance(2000);
    const ofEast = table.shardsOf(key).find(({ cluster }) => cluster === 'east');
    expect(ofEast).toMatchObject({ clusterIPs: ['10.1.0.7'], externalIPs: ['104.0.0.1'] });
    attachment.stop();
  });

  test('a member stops renewing while the other goes on -> left out after its lease time; renews -> back at once', async () => {
    const { sim, healthy, attachment, renew } = await setUp();
    for (let i = 0; i < 4; i++) {
      await sim.time.advance(10_000);
      await renew('west');
    }
    await sim.time.until(() => healthy().join() === 'west', { withinMs: 5000 });
    await renew('east');
    await sim.time.until(() => healthy().join() === 'east,west', { withinMs: 2000 });
    attachment.stop();
  });

  test('records in all namespaces -> one watch for each kind, none for a member; a member added later is there too', async () => {
    const { sim, admin, table, attachment, share, watches, requests } = await setUp();
    await sim.time.advance(3_000);
    expect(requests.filter((kind) => /endpoint/.test(kind))).toEqual([]);
    expect([...watches].sort()).toEqual(['clusters prod', 'federations prod', 'heartbeats ', 'serviceshards ']);
    const cluster = await admin.get(clusterType, { namespace: 'prod', name: 'west' });
    const metadata = { name: 'north', namespace: 'prod' };
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'prod-m-north' } };
    await admin.create(namespaceType, namespace);
    await share('north', 3);
    await admin.create(clusterType, { ...cluster, metadata, spec: { namespace: 'prod-m-north' } } as AnyObject);
    await sim.time.until(() => table.shardsOf(key).length === 3, { withinMs: 2000 });
    attachment.stop();
  });

  test('the authority loses its rights, then it ends -> nothing is asked any more', async () => {
    const { sim, broker, attachment, denied, requests } = await setUp();
    for (const kind of ['serviceshards', 'heartbeats']) denied.add(kind);
    sim.network.breakStreams({ server: broker.url });
    await sim.time.advance(10_000);
    attachment.stop();
    await sim.time.advance(10_000);
    const count = requests.length;
    await sim.time.advance(120_000);
    expect(requests.slice(count)).toEqual([]);
  });

  test('the broker is away -> nobody is condemned, and answers are marked stale', async () => {
    const { sim, broker, healthy, table, attachment } = await setUp();
    broker.kill();
    await sim.time.advance(120_000);
    expect(healthy()).toEqual(['east', 'west']);
    expect(new Int32Array(table.table.memory.state)[1]).not.toBe(0);
    attachment.stop();
  });

  test('a shard is withdrawn, a member leaves -> gone from the records [001-27]', async () => {
    const { sim, admin, table, attachment } = await setUp();
    await admin.delete(serviceShardType, { namespace: 'prod-m-east', name: 'web.shop' });
    await sim.time.until(() => table.shardsOf(key).length === 1, { withinMs: 2000 });
    await admin.delete(clusterType, { namespace: 'prod', name: 'west' });
    await sim.time.until(() => table.shardsOf(key).length === 0, { withinMs: 2000 });
    attachment.stop();
  });

  test('the federation lists its clusters -> the others have no shard in it', async () => {
    const { sim, admin, table, attachment } = await setUp();
    const federation = await admin.get(federationType, { namespace: 'prod', name: 'myfederation' });
    await admin.update(federationType, {
      ...federation,
      spec: { nameservers: ['10.0.0.53'], clusters: ['west'] },
    } as AnyObject);
    await sim.time.until(() => table.shardsOf(key).length === 1, { withinMs: 2000 });
    expect(table.shardsOf(key)[0]!.cluster).toBe('west');
    attachment.stop();
  });

  test('a service exported to some clusters only -> no external address for the rest', async () => {
    const { sim, admin, table, attachment, share } = await setUp();
    await admin.delete(serviceShardType, { namespace: 'prod-m-east', name: 'web.shop' });
    await share('east', 1, { exportTo: ['west'] });
    await sim.time.until(() => table.shardsOf(key)[0]?.externalIPs.length === 0, { withinMs: 2000 });
    attachment.stop();
  });
});
