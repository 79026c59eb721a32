// Reports this cluster's gateways and the roots of its trust domain at the broker: the status of the own Cluster, as the
// home's ConfigMap has them. Without gateways there, those are the addresses of the LoadBalancer Service in front of the
// gateway. A home that does not answer withdraws nothing.

import { isSameJson } from '../../../base/json.ts';
import { errorText, type Log } from '../../../base/log.ts';
import { createQueue } from '../../../base/queue.ts';
import type { World } from '../../../base/world.ts';
import type { Client } from '../../../kube/client/client.ts';
import { createInformer, type Informer, type InformerReader } from '../../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../../kube/objects/config-map.ts';
import type { Service } from '../../../kube/objects/service.ts';
import { type Cluster, clusterType } from '../../kinds/cluster.ts';
import { gatewayName, reportedGateways } from '../../rules/networks/gateway-report.ts';

export interface GatewayReportOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly broker: Client;
  readonly systemNamespace: string;
  readonly clusterset: string;
  readonly clusterId: string;
  readonly services: InformerReader<Service>;
  readonly clusters: Informer<Cluster>;
}

export interface GatewayReporter {
  start(): void;
  stop(): Promise<void>;
}

export function createGatewayReporter(options: GatewayReportOptions): GatewayReporter {
  const { world, log, home, broker, systemNamespace: namespace, services, clusters } = options;
  const fieldSelector = `metadata.name=${gatewayName}`;
  const given = createInformer<ConfigMap>({ client: home, world, log, type: configMapType, namespace, fieldSelector });
  const key = `${namespace}/${gatewayName}`;
  const ref = { namespace: options.clusterset, name: options.clusterId };
  const ownKey = `${ref.namespace}/${ref.name}`;

  async function report(): Promise<undefined> {
    const own = clusters.get(ownKey);
    if (own === undefined || !given.hasSynced || !services.hasSynced) return undefined;
    const { gateways, trustRoots } = reportedGateways(given.get(key), services.get(key));
    const known = { gateways: own.status?.gateways ?? [], trustRoots: own.status?.trustRoots ?? [] };
    if (isSameJson(known, { gateways, trustRoots })) return undefined;
    const body = { status: { gateways, trustRoots } };
    await broker.patch(clusterType, ref, { kind: 'merge', body }, { subresource: 'status' });
    log.info('reported the gateways of this cluster', { gateways: gateways.length, trustRoots: trustRoots.length });
    return undefined;
  }

  const queue = createQueue({
    name: 'gateway report',
    world,
    work: report,
    onFailure: ({ error }) =>
      log.info('the gateways of this cluster were not reported at the broker', { error: errorText(error) }),
  });
  const look = () => queue.add('gateways');
  given.on(look);
  return {
    start: () => {
      services.on((changed) => changed === key && look());
      clusters.on((changed) => changed === ownKey && look());
      queue.start();
      given.start();
      void Promise.all([given.whenSynced(), services.whenSynced(), clusters.whenSynced()]).then(look, () => {});
    },
    stop: async () => {
      given.stop();
      await queue.stop();
    },
  };
}
