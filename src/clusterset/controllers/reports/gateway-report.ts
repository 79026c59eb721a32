// Reports this cluster's gateways and the roots of its trust domain at the broker: the status of the own Cluster, as the
// home's ConfigMap has them. Without gateways there, those are the addresses of the LoadBalancer Service in front of the
// gateway. A home that does not answer withdraws nothing.

import { isSameJson } from '../../../base/json.ts';
import type { IpRange } from '../../../base/net/ip.ts';
import { createInformer, type Informer, type InformerReader } from '../../../kube/controller/informer.ts';
import { conditionOf, formatTime, type WantedCondition, withConditions } from '../../../kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../../../kube/objects/config-map.ts';
import type { Condition } from '../../../kube/objects/object.ts';
import type { Service } from '../../../kube/objects/service.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import { gatewayName, reportedGateways } from '../../rules/networks/gateway-report.ts';
import type { GatewayAddress } from '../../rules/networks/networks.ts';
import { type JudgedGateways, judgeGateways } from '../../rules/networks/reach.ts';
import { createReporter, patchOwnStatus, type Reporter, type ReportOptions } from './reporter.ts';

export interface GatewayReportOptions extends ReportOptions {
  readonly services: InformerReader<Service>;
  readonly clusters: Informer<Cluster>;
  /** Why no other cluster could use this address of a gateway, given the accepted ranges; undefined if it could. */
  readonly refusal: (address: string, accepted: readonly IpRange[]) => string | undefined;
}

export function createGatewayReporter(options: GatewayReportOptions): Reporter {
  const { world, log, home, systemNamespace: namespace, services, clusters } = options;
  const fieldSelector = `metadata.name=${gatewayName}`;
  const given = createInformer<ConfigMap>({ client: home, world, log, type: configMapType, namespace, fieldSelector });
  const key = `${namespace}/${gatewayName}`;
  const ownKey = `${options.clusterset}/${options.clusterId}`;

  async function report(): Promise<void> {
    const own = clusters.get(ownKey);
    if (own === undefined || !given.hasSynced || !services.hasSynced) return;
    const { gateways, trustRoots } = reportedGateways(given.get(key), services.get(key));
    const known = { gateways: own.status?.gateways ?? [], trustRoots: own.status?.trustRoots ?? [] };
    const conditions = conditionsOf(own, gateways);
    const isSame = isSameJson(known, { gateways, trustRoots }) && isSameJson(conditions, own.status?.conditions ?? []);
    if (isSame) return;
    const kept = conditions.length === 0 ? {} : { conditions: [...conditions] };
    const status = { gateways: [...gateways], trustRoots: [...trustRoots], ...kept };
    await patchOwnStatus(options, status, own.metadata.resourceVersion);
    log.info('reported the gateways of this cluster', { gateways: gateways.length, trustRoots: trustRoots.length });
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

  const reporter = createReporter(options, { what: 'the gateways of this cluster', source: given, report });
  return {
    ...reporter,
    start: () => {
      services.on((changed) => changed === key && reporter.look());
      clusters.on(reporter.look);
      reporter.start();
      void Promise.all([given.whenSynced(), services.whenSynced(), clusters.whenSynced()]).then(
        reporter.look,
        () => {},
      );
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
