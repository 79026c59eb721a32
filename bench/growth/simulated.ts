// A set of light agents in one process under the virtual clock: what the broker receives and sends in a minute of rest, and
// how long a dead member is served.

import { SimHome } from '../../sim/home.ts';
import { Simulation } from '../../sim/virtual-world.ts';
import { type Cluster, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { createClient } from '../../src/kube/client/client.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import type { Figure } from '../report.ts';
import { countingTransport } from './counting.ts';
import { startLightAgent } from './light-agent.ts';

const clusterset = 'prod';
const apiVersion = 'portolan.dev/v1alpha1';

export async function measureSimulated(size: number): Promise<Figure[]> {
  const simulation = new Simulation({ seed: 1 });
  const watches = new Map<string, Set<string>>();
  let renewals = 0;
  const broker = new SimHome({
    simulation,
    name: 'broker',
    serviceRanges: ['10.96.0.0/16'],
    mayDo: () => true,
    onRequest: (user, { verb, resource, namespace }) => {
      // An agent's own EndpointSlices are watched until it has seen that there are none.
      if (verb === 'watch' && resource !== 'endpointslices')
        watches.set(user, (watches.get(user) ?? new Set()).add(`${resource} ${namespace}`));
      if (verb === 'update' && resource === 'heartbeats') renewals += 1;
    },
  });
  await broker.start();
  const { admin } = broker;
  await admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: clusterset } });
  const metadata = { name: clusterset, namespace: clusterset };
  await admin.create(clusterSetType, {
    apiVersion,
    kind: 'ClusterSet',
    metadata,
    spec: {},
  } as never);
  const received = { bytes: 0, events: 0 };
  for (let index = 0; index < size; index += 1) {
    const id = `c${String(index).padStart(4, '0')}`;
    const namespace = `${clusterset}-m-${id}`;
    await admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    const cluster = { apiVersion, kind: 'Cluster', metadata: { name: id, namespace: clusterset }, spec: { namespace } };
    await admin.create<Cluster>(clusterType, cluster);
    const world = simulation.world(id);
    const transport = world.network.http({ server: broker.url, bearerToken: async () => id });
    const client = createClient(countingTransport(transport, received), { world, userAgent: id });
    startLightAgent({ world, broker: client, clusterset, clusterId: id, namespace });
  }
  await simulation.time.advance(120_000);
  const before = { ...received, renewals };
  await simulation.time.advance(100_000);
  const perSecond = (value: number) => value / 100;
  const events = perSecond(received.events - before.events);
  const most = Math.max(...watches.values().map(({ size: count }) => count));
  const at = `${size} simulated clusters`;
  return [
    { name: `${at}: watches of an agent, at most`, value: most, unit: '', wanted: 'at most 10', isMet: most <= 10 },
    { name: `${at}: idle, renewals a second`, value: perSecond(renewals - before.renewals), unit: '/s' },
    { name: `${at}: idle, events a second from the broker`, value: events, unit: '/s' },
    {
      name: `${at}: idle, bytes a second from the broker`,
      value: perSecond(received.bytes - before.bytes),
      unit: 'B/s',
    },
  ];
}
