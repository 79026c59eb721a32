// Many light agents in one process, each with its own connection to the broker; they publish records with the real client.
// Told what to do by its parent; sends back when a change has reached the last of its agents.

import { createRealWorld } from '../../src/base/real/world.ts';
import { endpointShardType } from '../../src/clusterset/kinds/endpoint-shard.ts';
import { serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { memberNamespace } from '../../src/clusterset/rules/broker-layout.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import type { EndpointSlice } from '../../src/kube/objects/endpoint-slice.ts';
import { countingTransport } from './counting.ts';
import { startLightAgent } from './light-agent.ts';
import type { Order, Reply } from './orders.ts';
import { changeOf, serviceRecord, sliceRecord } from './records.ts';

const world = createRealWorld();
const received = { bytes: 0, events: 0 };
const agents = new Map<string, LightAgent>();
const arrivals = new Map<number, number>();

interface LightAgent {
  readonly publish: (index: number, change: number) => Promise<void>;
}

function startAgent(id: string, order: Extract<Order, { kind: 'start' }>): LightAgent {
  const { clusterset, server, certificateAuthority, tokens } = order;
  const transport = world.network.http({ server, certificateAuthority, bearerToken: async () => tokens[id]! });
  const broker = createClient(countingTransport(transport, received), { world, userAgent: `light/${id}` });
  const namespace = memberNamespace(clusterset, id);
  const { members } = startLightAgent({ world, broker, clusterset, clusterId: id, namespace });
  members.on({
    endpoints: (_member, slice) => {
      if (slice !== undefined) arrived(id, slice);
    },
  });
  return { publish: (index, change) => publish(broker, { id, namespace, index, change }) };
}

function arrived(id: string, slice: EndpointSlice): void {
  const change = changeOf(slice);
  const key = `${id} ${change}`;
  if (change === 0 || seen.has(key)) return;
  seen.add(key);
  const count = (arrivals.get(change) ?? 0) + 1;
  arrivals.set(change, count);
  if (count === agents.size) send({ kind: 'arrived', change, atNs: String(process.hrtime.bigint()) });
}
const seen = new Set<string>();

interface Publication {
  readonly id: string;
  readonly namespace: string;
  readonly index: number;
  readonly change: number;
}

async function publish(broker: Client, { id, namespace, index, change }: Publication): Promise<void> {
  const service = { namespace: 'shop', name: `${id}-s${index}` };
  const wanted = sliceRecord({ service, namespace, addresses: ['10.1.0.1'], change });
  if (change > 0) {
    const at = wanted.metadata as { name: string; namespace: string };
    const present = await broker.get<EndpointSlice>(endpointShardType, at);
    await broker.update<EndpointSlice>(endpointShardType, { ...present, endpoints: wanted.endpoints });
    return;
  }
  await broker.create(endpointShardType, wanted);
  await broker.create(serviceShardType, serviceRecord(service, { namespace, ready: 1, slices: 1 }));
}

function send(reply: Reply): void {
  process.send!(reply);
}

process.on('message', (order: Order) => {
  if (order.kind === 'start') for (const id of order.ids) agents.set(id, startAgent(id, order));
  if (order.kind === 'received') send({ kind: 'received', ...received });
  if (order.kind === 'publish') {
    const work = agents.get(order.id)!.publish(order.index, order.change);
    work.then(
      () => send({ kind: 'published', id: order.id, index: order.index }),
      (error: unknown) => send({ kind: 'failed', error: String(error) }),
    );
  }
});
process.on('disconnect', () => process.exit(0));
