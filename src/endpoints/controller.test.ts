import { describe, expect, test } from 'vitest';
import { type Fault, withFaults } from '../../sim/faults.ts';
import { startHome } from '../../sim/home.ts';
import { Simulation } from '../../sim/virtual-world.ts';
import { silentLog } from '../base/log.ts';
import { createMetrics } from '../base/metrics.ts';
import { type EndpointSlice, endpointSliceType } from '../kube/objects/endpoint-slice.ts';
import { nodeType } from '../kube/objects/node.ts';
import type { AnyObject } from '../kube/objects/object.ts';
import { podType } from '../kube/objects/pod.ts';
import { type Service, serviceType } from '../kube/objects/service.ts';
import { runEndpointsController } from './controller.ts';

describe('endpoints controller', () => {
  test('endpoints controller: Pods come, change and go -> the slices of their Service follow', async () => {
    const { shown, put, podReady, remove, settle } = await start();
    await put(serviceType, service('web', { app: 'web' }));
    await put(podType, pod('p1', { app: 'web' }));
    await settle();
    expect(await shown()).toEqual(['web: ']);
    await podReady('p1', '10.1.0.1');
    await put(podType, pod('p2', { app: 'web' }));
    await podReady('p2', '10.1.0.2');
    await put(podType, pod('other', { app: 'db' }));
    await podReady('other', '10.1.0.3');
    await settle();
    expect(await shown()).toEqual(['web: 10.1.0.1 10.1.0.2']);
    await remove(podType, 'p1');
    await settle();
    expect(await shown()).toEqual(['web: 10.1.0.2']);
  });

  test('endpoints controller: labels of a Pod or the selector change -> the endpoint moves from one Service to the other', async () => {
    const { client, sim, shown, put, podReady, settle } = await start();
    await put(serviceType, service('blue', { color: 'blue', app: 'web' }));
    await put(serviceType, service('red', { color: 'red', app: 'web' }));
    await put(podType, pod('p1', { color: 'blue', app: 'web' }));
    await podReady('p1', '10.1.0.1');
    await settle();
    expect(await shown()).toEqual(['blue: 10.1.0.1', 'red: ']);
    const ref = { namespace: 'default', name: 'p1' };
    await sim.time.settle(
      client.patch(podType, ref, { kind: 'merge', body: { metadata: { labels: { color: 'red' } } } }),
    );
    await settle();
    expect(await shown()).toEqual(['blue: ', 'red: 10.1.0.1']);
    const selector = { spec: { selector: { color: 'red' } } };
    await sim.time.settle(
      client.patch(serviceType, { namespace: 'default', name: 'blue' }, { kind: 'merge', body: selector }),
    );
    await settle();
    expect(await shown()).toEqual(['blue: 10.1.0.1', 'red: 10.1.0.1']);
  });

  test('endpoints controller: a Service goes -> its slices go; one of somebody else stays', async () => {
    const { shown, put, podReady, remove, settle, client, sim } = await start();
    await put(serviceType, service('web', { app: 'web' }));
    await put(podType, pod('p1', { app: 'web' }));
    await podReady('p1', '10.1.0.1');
    await put(endpointSliceType, foreignSlice('web'));
    await settle();
    const before = await sim.time.settle(client.get(endpointSliceType, { namespace: 'default', name: 'foreign' }));
    await remove(serviceType, 'web');
    await settle();
    expect(await shown()).toEqual([]);
    const after = await sim.time.settle(client.get(endpointSliceType, { namespace: 'default', name: 'foreign' }));
    expect(after).toEqual(before);
  });

  test('endpoints controller: a Service is gone and its watch does not say so -> its slices are not written without end', async () => {
    // Lists and watches; a single Service can be read.
    const unseen: Fault = { home: 'home', method: 'GET', path: '/services?', times: 0 };
    const { sim, client, shown, put, podReady, remove, settle, reconciles } = await start([unseen]);
    await put(serviceType, service('web', { app: 'web' }));
    await put(podType, pod('p1', { app: 'web' }));
    await podReady('p1', '10.1.0.1');
    await settle();
    unseen.times = Number.POSITIVE_INFINITY;
    sim.network.breakStreams({ from: 'agent' });
    await settle();
    await remove(serviceType, 'web');
    await settle();
    const before = await reconciles();
    await settle();
    expect((await reconciles()) - before).toBeLessThan(20);
    expect(await shown()).toEqual([]);
    unseen.times = 0;
    await sim.time.settle(client.create(serviceType, service('web', { app: 'web' })));
    await sim.time.advance(60_000);
    expect(await shown()).toEqual(['web: 10.1.0.1']);
  });

  test('endpoints controller: a Service loses its selector -> its slices go, they follow nothing any more', async () => {
    const { client, sim, shown, put, podReady, settle } = await start();
    await put(serviceType, service('web', { app: 'web' }));
    await put(podType, pod('p1', { app: 'web' }));
    await podReady('p1', '10.1.0.1');
    await settle();
    const current = await sim.time.settle(client.get<Service>(serviceType, { namespace: 'default', name: 'web' }));
    const { selector: _dropped, ...spec } = current.spec!;
    await sim.time.settle(client.update(serviceType, { ...current, spec }));
    await settle();
    expect(await shown()).toEqual([]);
  });

  test('endpoints controller: the zone of a node changes -> endpoints on it follow; a heartbeat writes nothing', async () => {
    const { client, sim, put, podReady, settle, slices, home } = await start();
    await put(nodeType, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
    await put(serviceType, service('web', { app: 'web' }));
    await put(podType, pod('p1', { app: 'web' }));
    await podReady('p1', '10.1.0.1');
    await settle();
    const label = (key: string, value: string) =>
      sim.time.settle(
        client.patch(nodeType, { name: 'n1' }, { kind: 'merge', body: { metadata: { labels: { [key]: value } } } }),
      );
    await label('topology.kubernetes.io/zone', 'north');
    await settle();
    expect((await slices())[0]?.endpoints[0]).toMatchObject({ nodeName: 'n1', zone: 'north' });
    await label('seen', 'now');
    const revision = home.revision;
    await settle();
    expect(home.revision).toBe(revision);
  });

  test('endpoints controller: its slice is deleted or changed by somebody -> put right again', async () => {
    const { client, sim, shown, put, podReady, remove, settle, slices } = await start();
    await put(serviceType, service('web', { app: 'web' }));
    await put(podType, pod('p1', { app: 'web' }));
    await podReady('p1', '10.1.0.1');
    await settle();
    const [slice] = await slices();
    await sim.time.settle(client.update(endpointSliceType, { ...slice!, endpoints: [{ addresses: ['10.9.9.9'] }] }));
    await settle();
    expect(await shown()).toEqual(['web: 10.1.0.1']);
    await remove(endpointSliceType, slice!.metadata.name);
    await settle();
    expect(await shown()).toEqual(['web: 10.1.0.1']);
  });

  test('endpoints controller: restarted -> writes nothing that is right already', async () => {
    const { put, podReady, settle, home, restart } = await start();
    await put(serviceType, service('web', { app: 'web' }));
    for (let count = 1; count <= 5; count += 1) {
      await put(podType, pod(`p${count}`, { app: 'web' }));
      await podReady(`p${count}`, `10.1.0.${count}`);
    }
    await settle();
    const revision = home.revision;
    await restart();
    await settle();
    expect(home.revision).toBe(revision);
  });

  test('endpoints controller: one Pod of many Services -> only its own Services are reconciled', async () => {
    const { client, sim, put, podReady, settle, reconciles } = await start();
    for (let count = 0; count < 50; count += 1) await put(serviceType, service(`s${count}`, { app: `a${count}` }));
    await put(podType, pod('p1', { app: 'a7', extra: 'x' }));
    await settle();
    const before = await reconciles();
    await podReady('p1', '10.1.0.1');
    await settle();
    // Once for the Pod, once for the slice that was written because of it.
    expect((await reconciles()) - before).toBe(2);
    const note = { metadata: { annotations: { seen: 'now' } } };
    await sim.time.settle(client.patch(podType, { namespace: 'default', name: 'p1' }, { kind: 'merge', body: note }));
    await settle();
    // Nothing that an endpoint shows.
    expect((await reconciles()) - before).toBe(2);
  });
});

async function start(faults: Fault[] = []) {
  const sim = new Simulation({ seed: 2 });
  const home = await startHome(sim, 'home', (handler) => withFaults(faults)('home', handler));
  const client = home.clientOf(sim.world('test'));
  const metrics = createMetrics();
  const run = (name: string) => {
    const world = sim.world(name);
    return runEndpointsController({ client: home.clientOf(world), world, log: silentLog, metrics });
  };
  let controller = run('agent');
  await sim.time.until(() => controller.isRunning, { withinMs: 5000 });
  const slices = async () => {
    const { items } = await sim.time.settle(client.list<EndpointSlice>(endpointSliceType, { namespace: 'default' }));
    return items.filter(({ metadata }) => metadata.name !== 'foreign');
  };
  return {
    sim,
    home,
    client,
    slices,
    shown: async () => (await slices()).map(describeSlice).sort(),
    put: (type: typeof serviceType, object: AnyObject) => sim.time.settle(client.create(type, object)),
    remove: (type: typeof serviceType, name: string) =>
      sim.time.settle(client.delete(type, { namespace: 'default', name }, { gracePeriodSeconds: 0 })),
    podReady: async (name: string, ip: string) => {
      const body = {
        status: { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] },
      };
      const ref = { namespace: 'default', name };
      await sim.time.settle(client.patch(podType, ref, { kind: 'merge', body }, { subresource: 'status' }));
    },
    settle: () => sim.time.advance(5000),
    restart: async () => {
      await sim.time.settle(controller.stop());
      controller = run('agent again');
      await sim.time.until(() => controller.isRunning, { withinMs: 5000 });
    },
    reconciles: async () =>
      Number(/queue_work_seconds_count\{queue="endpoints"\} (\d+)/.exec(await metrics.text())?.[1]),
  };
}

function describeSlice({ metadata, endpoints }: EndpointSlice): string {
  const addresses = endpoints.flatMap((endpoint) => endpoint.addresses).sort();
  return `${metadata.labels?.['kubernetes.io/service-name']}: ${addresses.join(' ')}`;
}

function service(name: string, selector: Record<string, string>): AnyObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { selector, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
  };
}

function pod(name: string, labels: Record<string, string>): AnyObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'c' }] },
  };
}

function foreignSlice(serviceName: string): AnyObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'foreign', namespace: 'default', labels: { 'kubernetes.io/service-name': serviceName } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.8.0.1'] }],
    ports: [],
  };
}
