// Reports this cluster's gateways and the roots of its trust domain at the broker: the status of the own Cluster, as the
// home's ConfigMap has them. Without gateways there, those are the addresses of the LoadBalancer Service in front of the
// gateway. A home that does not answer withdraws nothing.

import { isSameJson } from '../../../base/json.ts';
import { errorText, type Log } from '../../../base/log.ts';
import type { IpRange } from '../../../base/net/ip.ts';
import { createQueue } from '../../../base/queue.ts';
import type { World } from '../../../base/world.ts';
import type { Client } from '../../../kube/client/client.ts';
import { createInformer, type Informer, type InformerReader } from '../../../kube/controller/informer.ts';
import { conditionOf, formatTime, type WantedCondition, withConditions } from '../../../kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../../../kube/objects/config-map.ts';
import type { Condition } from '../../../kube/objects/object.ts';
import type { Service } from '../../../kube/objects/service.ts';
import { type Cluster, clusterType } from '../../kinds/cluster.ts';
import { gatewayName, reportedGateways } from '../../rules/networks/gateway-report.ts';
import type { GatewayAddress } from '../../rules/networks/networks.ts';
import { type JudgedGateways, judgeGateways } from '../../rules/networks/reach.ts';

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
  /** Why no other cluster could use this address of a gateway, given the accepted ranges; undefined if it could. */
  readonly refusal: (address: string, accepted: readonly IpRange[]) => string | undefined;
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
    const conditions = conditionsOf(own, gateways);
    const isSame = isSameJson(known, { gateways, trustRoots }) && isSameJson(conditions, own.status?.conditions ?? []);
    if (isSame) return undefined;
    const body = { status: { gateways, trustRoots, ...(conditions.length === 0 ? {} : { conditions }) } };
    await broker.patch(clusterType, ref, { kind: 'merge', body }, { subresource: 'status' });
    log.info('reported the gateways of this cluster', { gateways: gateways.length, trustRoots: trustRoots.length });
    return undefined;
  }

  /** Whether other networks use them, by the rule that all members go by. None for a cluster that never had a gateway. */
  function conditionsOf(own: Cluster, gateways: readonly GatewayAddress[]): readonly Condition[] {
    const present = own.status?.conditions ?? [];
    if (gateways.length === 0 && conditionOf(present, acceptedCondition) === undefined) return present;
    const reported = { ...own, status: { ...own.status, gateways: [...gateways] } };
    const members = [...clusters.values()].map((one) => (one.metadata.name === own.metadata.name ? reported : one));
    const stamp = { now: formatTime(world.clock.wallMs()), observedGeneration: own.metadata.generation };
    return withConditions(present, [acceptance(judgeGateways(reported, { members, refusal: options.refusal }))], stamp);
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
      clusters.on(look);
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

const acceptedCondition = 'GatewaysAccepted';

function acceptance({ gateways, problems }: JudgedGateways): WantedCondition {
  const type = acceptedCondition;
  if (problems.length > 0) return { type, status: 'False', reason: 'Refused', message: problems.join('; ') };
  if (gateways.length === 0)
    return { type, status: 'False', reason: 'NoGateways', message: 'this cluster reports no gateways' };
  return { type, status: 'True', reason: 'Accepted', message: 'all gateways are inside the accepted ranges' };
}
