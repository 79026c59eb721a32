// A broker as a process, with many clusters and services at it, written as their agents would write them.

import { inParallel } from '../../src/base/in-parallel.ts';
import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { brokerInit } from '../../src/cli/clusterset/broker-init.ts';
import { clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { heartbeatType } from '../../src/clusterset/kinds/heartbeat.ts';
import { type ServiceShard, serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { memberRecord } from '../../src/clusterset/membership/member-record.ts';
import { memberLeaseName, memberNamespace } from '../../src/clusterset/rules/broker-layout.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { formatMicroTime } from '../../src/kube/objects/lease.ts';
import { manifest } from '../../src/kube/objects/manifest.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';

export const clusterset = 'bench';
const exportersPerService = 5;
const atOnceMax = 32;

export interface BenchSet {
  readonly clusters: number;
  readonly services: number;
}

export async function fillBroker(client: Client, { clusters, services }: BenchSet): Promise<void> {
  const world = createRealWorld();
  const deps = { world, host: createRealHost() };
  // The leases here are never renewed.
  const lease = { renewSeconds: 600, durationSeconds: 7_200, holdDownSeconds: 2, holdDownMaxSeconds: 10 };
  await brokerInit({ client, deps, clusterset, spec: { lease } });
  const ids = Array.from({ length: clusters }, (_, n) => clusterId(n));
  await inParallel(ids.entries(), { atOnceMax }, async ([n, id]) => {
    const namespace = memberNamespace(clusterset, id);
    const region = `region-${n % 5}`;
    const renewTime = formatMicroTime(world.clock.wallMs());
    const record = { homeUid: id, joinedAt: renewTime, region, zone: `${region}-a`, podRanges: [], serviceRanges: [] };
    for (const { type, object } of [
      manifest(namespaceType, { name: namespace }, {}),
      manifest(clusterType, { name: id, namespace: clusterset }, { spec: { namespace, region, zone: `${region}-a` } }),
      memberRecord(namespace, record),
      manifest(
        heartbeatType,
        { name: memberLeaseName, namespace },
        {
          spec: { holderIdentity: id, leaseDurationSeconds: 7_200, renewTime },
        },
      ),
    ])
      await client.create(type, object);
  });
  const shards = Array.from({ length: services * exportersPerService }, (_, n) => ({
    service: n % services,
    cluster: (n + Math.floor(n / services) * 7) % clusters,
  }));
  await inParallel(shards, { atOnceMax }, async ({ service, cluster }) => {
    await client.create(serviceShardType, shardOf(service, cluster)).catch(ignoreTwice);
  });
}

function ignoreTwice(error: { code?: number }): void {
  if (error.code !== 409) throw error;
}

export function clusterId(n: number): string {
  return `cluster-${String(n).padStart(3, '0')}`;
}

export function serviceName(n: number): string {
  return `service-${String(n).padStart(5, '0')}`;
}

/** Every tenth service has a cluster that disagrees on its port. */
function shardOf(service: number, cluster: number, readyEndpoints = 3): ServiceShard {
  const port = service % 10 === 0 && cluster % 2 === 0 ? 8081 : 8080;
  return manifest(
    serviceShardType,
    { name: `${serviceName(service)}.shop`, namespace: memberNamespace(clusterset, clusterId(cluster)) },
    {
      spec: {
        type: 'ClusterSetIP' as const,
        exportedAt: '2026-01-01T00:00:00Z',
        ports: [{ name: 'http', protocol: 'TCP' as const, port }],
        sessionAffinity: 'None' as const,
        readyEndpoints,
      },
    },
  ).object as ServiceShard;
}
