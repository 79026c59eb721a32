import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { createLog } from '../../base/log.ts';
import { createClient } from '../../kube/client/client.ts';
import { ScriptedHome } from '../../kube/testing/scripted-home.ts';
import { predict } from '../explain/predict.ts';
import { type Cluster, clusterType } from '../kinds/cluster.ts';
import { endpointShardType } from '../kinds/endpoint-shard.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { MemberFollower } from '../members/follower.ts';
import { readSetPolicy } from '../rules/set-policy.ts';
import type { AgentContext } from './context.ts';
import { countedRecords } from './counted-records.ts';
import { MemberServices } from './member-services.ts';

const service = { namespace: 'shop', name: 'checkout' };

function shard(namespace: string, ports: number): ServiceShard {
  return {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'ServiceShard',
    metadata: { name: 'checkout.shop', namespace, uid: namespace, resourceVersion: '5' },
    spec: {
      type: 'ClusterSetIP',
      exportedAt: '2020-01-01T00:00:00Z',
      ports: Array.from({ length: ports }, (_, index) => ({ name: `p${index}`, port: index + 1 })),
    },
  };
}

describe('counted records', () => {
  test('counted records: a record with more ports than the definition allows -> that member does not count, the others do, and a warning says so', async () => {
    const lines: string[] = [];
    const sim = new Simulation({ seed: 1 });
    const world = sim.world('agent');
    const clusters = new ScriptedHome(clusterType);
    for (const id of ['east', 'west']) clusters.put(id, { spec: { namespace: id } satisfies Cluster['spec'] });
    for (const object of clusters.objects.values()) object.metadata.namespace = 'prod';
    const records = new ScriptedHome(serviceShardType);
    for (const id of ['east', 'west']) records.objects.set(id, shard(id, id === 'west' ? 30_000 : 1) as never);
    const endpoints = new ScriptedHome(endpointShardType);
    sim.network.listen('https://broker', async (request) => {
      const home = /\/(clusters|endpointshards|serviceshards)/.exec(request.path)?.[1];
      return (home === 'clusters' ? clusters : home === 'serviceshards' ? records : endpoints).handle(request);
    });
    const broker = createClient(world.network.http({ server: 'https://broker' }), { world, userAgent: 'test' });
    const log = createLog({ clock: world.clock, level: 'warn', write: (line) => void lines.push(line) });
    const members = new MemberFollower({ world, log, broker, clusterset: 'prod', hasEndpoints: true });
    new MemberServices({ members, log });
    members.start();
    await sim.time.until(() => members.get('west')?.shards.size === 1 && members.get('east')?.shards.size === 1, {
      withinMs: 5_000,
    });
    const context = {
      members,
      verdict: () => 'alive',
      policy: () => readSetPolicy(undefined),
    } as unknown as AgentContext;
    expect(countedRecords(context, service, { withLegacy: false }).map(({ cluster }) => cluster)).toEqual(['east']);
    expect(lines.filter((line) => line.includes('record cannot be counted, ignored'))).toHaveLength(1);
    expect(lines.join('')).toContain('has 30000 ports, more than 1000');
    members.stop();
  });

  test('counted records: the same in a preview -> as if that member did not export', () => {
    const nothing = { namespaces: new Set(['shop']), services: new Map(), exports: new Map(), slices: [] };
    const cluster = (id: string, ports: number) => ({
      ...nothing,
      id,
      verdict: 'alive' as const,
      left: new Map([['shop/checkout', shard(id, ports)]]),
    });
    const prediction = predict([cluster('east', 1), cluster('west', 30_000)], readSetPolicy(undefined));
    expect(prediction.merge('shop/checkout')?.clusters).toEqual(['east']);
  });
});
