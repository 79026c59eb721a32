// `portolan proxy --services` on a node without kube-proxy: real packets to the cluster IPs of a home's own Services, and to the
// derived Service of an import. Needs root.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { proxyServicesObjects } from '../src/clusterset/membership/proxy-objects.ts';
import type { AnyObject } from '../src/kube/objects/object.ts';
import { until } from './support/dns-process.ts';
import { importOf, sliceOf } from './support/imports.ts';
import { Namespaces, namespacesMissing, type Place } from './support/namespaces.ts';
import {
  ask,
  type LineProcess,
  type NodeHome,
  type ProxyProcess,
  startNodeHome,
  startProxyProcess,
  startServers,
} from './support/proxy-processes.ts';

const why = namespacesMissing();
const serviceRange = '10.96.0.0/12';
const ports = [
  { name: 'http', port: 80, protocol: 'TCP' },
  { name: 'dns', port: 53, protocol: 'UDP' },
];
const targets = [
  { name: 'http', port: 8080, protocol: 'TCP' },
  { name: 'dns', port: 5353, protocol: 'UDP' },
];

describe.skipIf(why !== '')(`proxy --services${why}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-services-'));
  let net: Namespaces;
  let node: Place;
  let far: Place;
  let pod: Place;
  let home: NodeHome;
  let servers: LineProcess;
  let own: LineProcess;
  let proxy: ProxyProcess;

  const flags = (...more: string[]) => [
    ...['--kubeconfig', home.proxyKubeconfig, '--node', 'node-1', '--cluster-id', 'near'],
    ...['--services', '--service-range', serviceRange, ...more],
  ];
  const put = <T = AnyObject>(object: object) => home.order<T>({ put: object as never });
  const service = async (name: string, more: object = {}, labels: object = {}) => {
    const metadata = { name, namespace: 'shop', labels };
    const made = await put<AnyObject & { spec: { clusterIP: string } }>({
      ...{ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports, ...more } },
    });
    return made.spec.clusterIP;
  };
  const slice = (of: string, addresses: readonly string[]) =>
    put({
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4', ports: targets },
      metadata: { name: `${of}-1`, namespace: 'shop', labels: { 'kubernetes.io/service-name': of } },
      endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    });
  const who = async (place: Place, task: object) => {
    const { answers, failures } = await ask(net, place, { kind: 'tcp', port: 80, count: 30, ...task });
    return { who: Object.keys(answers).sort(), failures };
  };
  const eventually = (place: Place, task: object, expected: readonly string[]) =>
    until(`${JSON.stringify(task)} is answered by ${expected}`, async () => {
      const seen = await who(place, task);
      return JSON.stringify(seen) === JSON.stringify({ who: [...expected].sort(), failures: {} });
    });
  const differences = async () => JSON.parse((await proxy.get('/verify', { method: 'POST' })).text).differences;

  beforeAll(async () => {
    net = new Namespaces('ps');
    node = net.addMachine('node', 11);
    far = net.addMachine('far', 12);
    pod = net.addPod(node, 'pod', '10.66.0');
    net.run(node, 'sysctl -qw net.ipv4.ip_forward=1');
    for (const host of [1, 2]) net.ip(far, `addr add 10.77.0.${host}/32 dev lo`);
    net.ip(node, `route add 10.77.0.0/24 via ${far.address}`);
    net.ip(far, `route add 10.66.0.0/24 via ${node.address}`);
    home = await startNodeHome(net, node, { directory });
    for (const { object } of proxyServicesObjects()) await put(object);
    await put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    const listening = [1, 2].flatMap((host) => [
      { kind: 'tcp', port: 8080, address: `10.77.0.${host}`, says: `s${host}` },
      { kind: 'udp', port: 5353, address: `10.77.0.${host}`, says: `s${host}` },
    ]);
    servers = await startServers(net, far, listening);
    own = await startServers(net, pod, [{ kind: 'tcp', port: 8080, address: pod.address, says: 'pod' }]);
    proxy = await startProxyProcess(net, node, flags());
    await proxy.whenReady();
  });

  afterAll(async () => {
    await proxy?.stop('SIGKILL');
    await servers?.stop();
    await own?.stop();
    await home?.stop();
    net?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  test('a Service and its endpoints -> its cluster IP answers, TCP and UDP, for node and pod, and a pod reaches itself', async () => {
    const host = await service('web');
    await slice('web', ['10.77.0.1', '10.77.0.2']);
    await eventually(node, { host }, ['s1', 's2']);
    expect(await who(node, { host, kind: 'udp', port: 53 })).toEqual({ who: ['s1', 's2'], failures: {} });
    expect(await who(pod, { host })).toEqual({ who: ['s1', 's2'], failures: {} });
    await slice('web', [pod.address]);
    await eventually(pod, { host, count: 5, timeoutMs: 1000 }, ['pod']);
    expect(await differences()).toEqual([]);
  });

  test('no endpoint, a port or an address that is none -> refused at once; endpoints come -> answered; the Service goes -> refused', async () => {
    const host = await service('empty');
    const refused = { who: [], failures: { ECONNREFUSED: 3 } };
    for (const place of [node, pod])
      for (const task of [{ host }, { host, port: 81 }, { host: '10.111.0.99' }])
        expect(await who(place, { ...task, count: 3 })).toEqual(refused);
    await slice('empty', ['10.77.0.2']);
    await eventually(pod, { host }, ['s2']);
    await home.order({ remove: { apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'shop', name: 'empty' } } });
    await until('it is refused', async () => (await who(pod, { host, count: 1 })).failures['ECONNREFUSED'] === 1);
  });

  test('session affinity -> one endpoint', async () => {
    const host = await service('sticky', { sessionAffinity: 'ClientIP' });
    await slice('sticky', ['10.77.0.1', '10.77.0.2']);
    await until('it is served', async () => (await who(node, { host, count: 1 })).who.length === 1);
    expect((await who(node, { host })).who).toHaveLength(1);
  });

  test('an import with a derived Service -> its address answers by the choice of the clusterset', async () => {
    const host = await service('derived-1', {}, { 'portolan.dev/derived-for': 'fed' });
    await put(importOf('fed', { ips: [host], ports }));
    await put(sliceOf({ service: 'fed', cluster: 'far', addresses: ['10.77.0.1'], ports: targets }));
    await eventually(pod, { host }, ['s1']);
    expect(JSON.parse((await proxy.get('/status')).text).problems).toEqual({});
  });

  test('killed, changes meanwhile, started again -> the kernel equals the plan', async () => {
    const host = await service('later');
    await slice('later', ['10.77.0.1']);
    await eventually(node, { host }, ['s1']);
    await proxy.stop('SIGKILL');
    expect(await who(node, { host }), 'the rules stay').toEqual({ who: ['s1'], failures: {} });
    await slice('later', ['10.77.0.2']);
    proxy = await startProxyProcess(net, node, flags());
    await proxy.whenReady();
    expect(await who(node, { host })).toEqual({ who: ['s2'], failures: {} });
    expect(await differences()).toEqual([]);
  });

  test('its Lease -> says that it carries Services, once they are', async () => {
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { namespace: 'portolan-system' } };
    const name = 'portolan-proxy-node-1';
    await until('it says so', async () => {
      const { metadata } = await home.order({ get: { ...lease, metadata: { ...lease.metadata, name } } as never });
      return metadata.annotations?.['portolan.dev/carries-services'] === 'true';
    });
  });

  test.each([
    [['--mode', 'userspace', '--range', '127.100.0.0/16'], /^2: .*not by --mode userspace/],
    [['--range', '10.100.0.0/16'], /^1: .*10\.100\.0\.0\/16 of the clusterset overlaps 10\.96\.0\.0\/12/],
  ])('%j -> refused with a reason', async (more, reason) => {
    await proxy.stop();
    const failed = await startProxyProcess(net, node, flags(...more)).catch((error: Error) => error.message);
    expect(String(failed).replace('portolan proxy ended with ', '')).toMatch(new RegExp(reason.source, 's'));
  });

  test('rules of kube-proxy on the node -> refused, and nothing is written', async () => {
    await proxy.stop();
    net.run(node, `nft 'add table ip kube-proxy'`);
    const before = net.run(node, 'nft -t list ruleset');
    const failed = await startProxyProcess(net, node, flags()).catch((error: Error) => error.message);
    expect(failed).toMatch(/table ip kube-proxy: kube-proxy carries its Services/);
    expect(net.run(node, 'nft -t list ruleset')).toBe(before);
  });
});
