// Two authorities of one federation as processes, on one broker and one real etcd: one of them keeps the records, either may
// be killed under load, and a load balancer that has only a name is looked up.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { clusterType } from '../src/clusterset/kinds/cluster.ts';
import { clusterSetType } from '../src/clusterset/kinds/cluster-set.ts';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import { serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import { memberLeaseName } from '../src/clusterset/rules/broker-layout.ts';
import { askUdp } from '../src/dns/testing/edge/client.ts';
import { federationType } from '../src/federation/kinds/federation.ts';
import { EtcdRecords } from '../src/federation/records/etcd-records.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { type Lease, leaseType } from '../src/kube/objects/lease.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import type { AnyObject } from '../src/kube/objects/object.ts';
import { systemNamespace } from '../src/kube/objects/ours.ts';
import { partAnnotations, partLabel } from '../src/kube/objects/part-lease.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { type Home, startHome } from '../src/main/home/part.ts';
import { describeWith } from './support/counterparts.ts';
import { type DnsProcess, type EtcdProcess, startDnsProcess, startEtcd, until } from './support/dns-process.ts';

const world = createRealWorld();
const name = 'myservice.myns.myfederation.svc.federation';

function object(apiVersion: string, kind: string, namespace: string | undefined, name: string, rest: object = {}) {
  return { apiVersion, kind, metadata: { name, ...(namespace ? { namespace } : {}) }, ...rest } as AnyObject;
}

describeWith(['etcd'], 'two authorities on one etcd', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-authorities-'));
  const running = new Set<DnsProcess>();
  let etcd: EtcdProcess;
  let broker: Home;
  let client: Client;
  let records: EtcdRecords;
  let authorities: DnsProcess[];
  let resolver: DnsProcess;
  let upstream: DnsProcess;
  let renewing: NodeJS.Timeout;
  /** Admin endpoints of both authorities. */
  let startedAt: string[];

  async function start(...args: string[]): Promise<DnsProcess> {
    const dns = await startDnsProcess(args);
    running.add(dns);
    return dns;
  }

  const startAuthority = () => {
    const flags = { federation: 'myfederation', clusterset: 'prod', etcd: etcd.url, 'trusted-range': '127.0.0.0/8' };
    const more = { 'broker-kubeconfig': broker.kubeconfig, forward: `127.0.0.1:${upstream.port}` };
    return start(...Object.entries({ ...flags, ...more }).flatMap(([flag, value]) => [`--${flag}`, value]));
  };

  async function joinSet(id: string, n: number): Promise<void> {
    const namespace = `prod-m-${id}`;
    await client.create(namespaceType, object('v1', 'Namespace', undefined, namespace));
    await client.create(clusterType, object('portolan.dev/v1alpha1', 'Cluster', 'prod', id, { spec: { namespace } }));
    const heartbeat = object('portolan.dev/v1alpha1', 'Heartbeat', namespace, memberLeaseName, { spec: {} });
    await client.create(heartbeatType, heartbeat);
    await share(id, 'myservice', { clusterIPs: [`10.0.0.${n}`], loadBalancer: [{ ip: `104.32.64.${n}` }] });
  }

  const share = (id: string, service: string, spec: object) =>
    client.create(
      serviceShardType,
      object('portolan.dev/v1alpha1', 'ServiceShard', `prod-m-${id}`, `${service}.myns`, {
        spec: { type: 'ClusterSetIP', exportedAt: '2026-01-01T00:00:00Z', readyEndpoints: 1, ...spec },
      }),
    );

  async function renew(id: string): Promise<void> {
    const lease = await client.get(heartbeatType, { namespace: `prod-m-${id}`, name: memberLeaseName });
    await client.update(heartbeatType, { ...lease, spec: { holderIdentity: String(Math.random()) } } as AnyObject);
  }

  /** Addresses in all Leases of authorities, in order. */
  const adminPlaces = async () => {
    const { items } = await client.list<Lease>(leaseType, { namespace: systemNamespace });
    return items
      .filter(({ metadata }) => metadata.labels?.[partLabel] === 'authority')
      .map(({ metadata }) => metadata.annotations?.[partAnnotations.admin])
      .sort();
  };

  const leaders = async () => {
    const states = await Promise.all(
      authorities.map(({ admin }) => fetch(`${admin}/status`).then((reply) => reply.json())),
    );
    return states.map((state) => (state as { isLeading: boolean }).isLeading);
  };

  beforeAll(async () => {
    etcd = await startEtcd(`${directory}/etcd`);
    records = new EtcdRecords({
      transports: [world.network.http({ server: etcd.url })],
      world,
      log: silentLog,
      federation: 'myfederation',
    });
    const listen = { host: '127.0.0.1', port: 0 };
    broker = await startHome({ world, log: silentLog, directory: `${directory}/broker`, listen });
    client = createClient(broker.transport, { world, userAgent: 'test' });
    await client.create(namespaceType, object('v1', 'Namespace', undefined, 'prod'));
    await client.create(
      federationType,
      object('portolan.dev/v1alpha1', 'Federation', 'prod', 'myfederation', { spec: { ttlSeconds: 1 } }),
    );
    const lease = { renewSeconds: 2, durationSeconds: 6 };
    await client.create(
      clusterSetType,
      object('portolan.dev/v1alpha1', 'ClusterSet', 'prod', 'prod', { spec: { lease } }),
    );
    await joinSet('foo', 1);
    await joinSet('bar', 2);
    // A name for a load balancer: any server that answers will do, so a resolver over the broker's own Services does.
    const spec = { clusterIP: '10.96.77.1', ports: [{ port: 80, protocol: 'TCP' }] };
    await client.create(serviceType, object('v1', 'Service', 'prod', 'balancer', { spec }));
    upstream = await start('--cluster-id', 'cloud', '--kubeconfig', broker.kubeconfig);
    authorities = [await startAuthority(), await startAuthority()];
    const nameservers = authorities.map(({ port }) => `127.0.0.1:${port}`).join();
    resolver = await start(
      ...['--cluster-id', 'foo', '--kubeconfig', broker.kubeconfig],
      ...['--stub', `myfederation.svc.federation=${nameservers}`],
    );
    await Promise.all([...running].map((dns) => dns.whenReady()));
    renewing = setInterval(() => void Promise.all([renew('foo'), renew('bar')]).catch(() => {}), 2000);
  });

  afterAll(async () => {
    clearInterval(renewing);
    await Promise.all([...running].map((dns) => dns.stop('SIGKILL')));
    await etcd.stop();
    await broker.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('two authorities on one machine -> a Lease each', async () => {
    startedAt = authorities.map(({ admin }) => admin);
    await until('both report', async () => (await adminPlaces()).length === 2);
    expect(await adminPlaces()).toEqual(startedAt.sort());
    // Until each has seen the other renew, one that goes is taken for the predecessor of the other.
    await until('both have renewed', async () => {
      const { items } = await client.list<Lease>(leaseType, { namespace: systemNamespace, labelSelector: partLabel });
      const times = items.map(({ spec }) => Date.parse(spec?.renewTime ?? '') - Date.parse(spec?.acquireTime ?? ''));
      return times.filter((ms) => ms > 4000).length >= 2;
    });
    await pause(2500);
  });

  test("exported shards -> one of the two writes the seed's records to etcd, both answer by them [001-13]", async () => {
    await until('one leader', async () => (await leaders()).filter(Boolean).length === 1);
    await until('both records', async () => (await records.list()).records.length === 2);
    expect((await records.list()).records.map(({ key, value }) => [key, JSON.parse(value)])).toEqual([
      ['/myfederation/myns/myservice/bar', { externalIP: '104.32.64.2', clusterIP: '10.0.0.2' }],
      ['/myfederation/myns/myservice/foo', { externalIP: '104.32.64.1', clusterIP: '10.0.0.1' }],
    ]);
    for (const { target } of authorities) {
      await until('an answer', async () => (await askUdp(target, `${name} A`)).includes('104.32.64.2'));
    }
    expect(await askUdp(resolver.target, `${name} A`)).toBe('10.0.0.1, 104.32.64.2');
  });

  test('a load balancer that has only a name -> looked up, and in its place among the others [001-26]', async () => {
    const loadBalancer = [{ hostname: 'balancer.prod.svc.cluster.local' }];
    await share('bar', 'named', { clusterIPs: ['10.0.0.9'], loadBalancer });
    await share('foo', 'named', { clusterIPs: ['10.0.0.8'] });
    const ask = () => askUdp(resolver.target, 'named.myns.myfederation.svc.federation A');
    await until('its address', async () => (await ask()) === '10.0.0.8, 10.96.77.1');
  });

  test('the leader is killed -9 under load -> no failed lookup, and the other keeps the records [001-14]', async () => {
    const leader = (await leaders()).indexOf(true);
    const failed: string[] = [];
    let asked = 0;
    let isLoading = true;
    const load = async (lane: number) => {
      while (isLoading) {
        // A new name each time, so that the cache does not help.
        const answer = await askUdp(resolver.target, `x${lane}-${asked++}.${name} A`).catch(String);
        if (answer !== 'NXDOMAIN') failed.push(answer);
      }
    };
    const lanes = Array.from({ length: 8 }, (_, lane) => load(lane));
    await until('load', () => asked > 100);
    await authorities[leader]!.stop('SIGKILL');
    const atDeath = asked;
    await until('more load', () => asked > atDeath + 300);
    isLoading = false;
    await Promise.all(lanes);
    expect(failed).toEqual([]);
    expect(await askUdp(resolver.target, `${name} A`)).toBe('10.0.0.1, 104.32.64.2');
    await client.delete(serviceShardType, { namespace: 'prod-m-bar', name: 'myservice.myns' });
    await until('the other writes', async () =>
      (await records.list()).records.every(({ key }) => key !== '/myfederation/myns/myservice/bar'),
    );
    authorities = authorities.filter((_, i) => i !== leader);
  });

  test("a cluster's lease runs out -> its record is not ready, and nobody is sent there [001-27]", async () => {
    clearInterval(renewing);
    renewing = setInterval(() => void renew('bar').catch(() => {}), 2000);
    await until('foo is left out', async () =>
      (await records.list()).records.some(
        ({ key, value }) => key.endsWith('/myservice/foo') && value.includes('"ready":false'),
      ),
    );
    await until('no answer', async () => (await askUdp(authorities[0]!.target, `foo.${name} A`)) === 'NXDOMAIN');
  });

  test('the Lease of an authority -> at the broker with its admin address; killed it stays, stopped in order it goes', async () => {
    const [authority] = authorities as [DnsProcess];
    expect(await adminPlaces()).toEqual(startedAt.sort());
    await authority.stop('SIGTERM');
    expect(await adminPlaces()).toEqual(startedAt.filter((url) => url !== authority.admin));
  });
});
