// Reports at the broker where the resolver of this cluster takes stub zones, and by which authority its certificate is known:
// the status of the own Cluster. A resolver that is gone stays reported until another one reports, so that a restart changes
// nothing.

import { errorText, type Log } from '../../base/log.ts';
import { createQueue } from '../../base/queue.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { partLabel, partState } from '../../kube/objects/part-lease.ts';
import { type Cluster, clusterType } from '../kinds/cluster.ts';
import { stubAuthorityAnnotation, stubEndpointAnnotation } from '../membership/resolver-authority.ts';

export interface ResolverReportOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly broker: Client;
  readonly systemNamespace: string;
  readonly clusterset: string;
  readonly clusterId: string;
}

export interface ResolverReport {
  start(): void;
  stop(): Promise<void>;
}

export function createResolverReport(options: ResolverReportOptions): ResolverReport {
  const { world, log, home, broker, systemNamespace: namespace } = options;
  const labelSelector = `${partLabel}=dns`;
  const leases = createInformer<Lease>({ client: home, world, log, type: leaseType, namespace, labelSelector });
  let reported = '';

  async function report(): Promise<undefined> {
    const resolver = resolverIn([...leases.values()], world.clock.wallMs());
    const text = JSON.stringify(resolver);
    if (resolver === undefined || text === reported) return undefined;
    const ref = { namespace: options.clusterset, name: options.clusterId };
    const { status } = await broker.get<Cluster>(clusterType, ref);
    const { endpoint, caBundle } = resolver;
    if (status?.resolver?.endpoint !== endpoint || status.resolver.caBundle !== caBundle) {
      const body = { status: { resolver } };
      await broker.patch(clusterType, ref, { kind: 'merge', body }, { subresource: 'status' });
      log.info('reported where the resolver takes stub zones', { endpoint });
    }
    reported = text;
    return undefined;
  }

  const queue = createQueue({
    name: 'resolver report',
    world,
    work: report,
    onFailure: ({ error }) =>
      log.info('the endpoint of the resolver was not reported at the broker', { error: errorText(error) }),
  });
  leases.on(() => queue.add('resolver'));
  return {
    start: () => {
      queue.start();
      leases.start();
    },
    stop: async () => {
      leases.stop();
      await queue.stop();
    },
  };
}

/** If there are several resolvers, the first by name, so that replicas of the agent agree. */
function resolverIn(leases: readonly Lease[], nowMs: number): { endpoint: string; caBundle: string } | undefined {
  const living = leases.filter((lease) => partState(lease, nowMs).kind === 'reported');
  for (const { metadata } of living.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    const endpoint = metadata.annotations?.[stubEndpointAnnotation];
    const caBundle = metadata.annotations?.[stubAuthorityAnnotation];
    if (endpoint !== undefined && caBundle !== undefined) return { endpoint, caBundle };
  }
  return undefined;
}
