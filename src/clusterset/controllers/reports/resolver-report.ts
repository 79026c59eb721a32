// Reports at the broker where the resolver of this cluster takes stub zones, and by which authority its certificate is known:
// the status of the own Cluster. A resolver that is gone stays reported until another one reports, so that a restart changes
// nothing.

import { createInformer } from '../../../kube/controller/informer.ts';
import { type Lease, leaseType } from '../../../kube/objects/lease.ts';
import { partLabel, partState } from '../../../kube/objects/part-lease.ts';
import { type Cluster, clusterType } from '../../kinds/cluster.ts';
import { stubAuthorityAnnotation, stubEndpointAnnotation } from '../../membership/resolver-authority.ts';
import { createReporter, patchOwnStatus, type Reporter, type ReportOptions } from './reporter.ts';

export function createResolverReporter(options: ReportOptions): Reporter {
  const { world, log, home, broker, systemNamespace: namespace } = options;
  const labelSelector = `${partLabel}=dns`;
  const leases = createInformer<Lease>({ client: home, world, log, type: leaseType, namespace, labelSelector });
  let reported = '';

  async function report(): Promise<void> {
    const resolver = resolverIn([...leases.values()], world.clock.wallMs());
    const text = JSON.stringify(resolver);
    if (resolver === undefined || text === reported) return;
    const ref = { namespace: options.clusterset, name: options.clusterId };
    const { status } = await broker.get<Cluster>(clusterType, ref);
    const { endpoint, caBundle } = resolver;
    if (status?.resolver?.endpoint !== endpoint || status.resolver.caBundle !== caBundle) {
      await patchOwnStatus(options, { resolver });
      log.info('reported where the resolver takes stub zones', { endpoint });
    }
    reported = text;
  }

  return createReporter(options, { what: 'the endpoint of the resolver', source: leases, report });
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
