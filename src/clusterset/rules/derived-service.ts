// The Service that stands for an import where the cluster's own data plane shall carry its traffic: without a selector, with
// the merged ports, its cluster IP the import's. Pure.

import { digestOf } from '../../kube/objects/bounded-name.ts';
import { managedByLabel, managerName } from '../../kube/objects/ours.ts';
import type { Service, ServiceSpec } from '../../kube/objects/service.ts';
import type { Merge } from './merge/merged.ts';
import type { ServiceKey } from './names.ts';

/** On derived Services: the import they are of, in the same namespace. */
const derivedForLabel = 'portolan.dev/derived-for';

/** On imports, as Gateway controllers read it: the Service in the same namespace that carries the import's traffic. */
export const derivedServiceAnnotation = 'multicluster.kubernetes.io/derived-service';

/** Not the import's own name: a Service of that name is the cluster's own, and stays what it is. */
export function derivedServiceName({ name }: ServiceKey): string {
  return `derived-${digestOf(name)}`;
}

/** `namespace/name` of the import; undefined for any other Service. */
export function derivedFor({ metadata }: Service): string | undefined {
  const name = metadata.labels?.[derivedForLabel];
  return name === undefined ? undefined : `${metadata.namespace}/${name}`;
}

export interface DerivedRequest {
  readonly service: ServiceKey;
  readonly merge: Merge;
  /** Addresses to ask for, when it is made again. */
  readonly ips: readonly string[];
}

export function planDerivedService({ service, merge, ips }: DerivedRequest): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: derivedServiceName(service),
      namespace: service.namespace,
      labels: { [managedByLabel]: managerName, [derivedForLabel]: service.name },
    },
    spec: {
      type: 'ClusterIP',
      ...(ips.length === 0 ? {} : { clusterIP: ips[0], clusterIPs: [...ips] }),
      ...(merge.ipFamilies.length === 0
        ? {}
        : {
            ipFamilies: [...merge.ipFamilies],
            ipFamilyPolicy: merge.ipFamilies.length > 1 ? 'PreferDualStack' : 'SingleStack',
          }),
      ...planTraffic(merge),
    },
  };
}

/** The present Service with the exports' traffic settings: its addresses and defaults stay. */
export function withTraffic(present: Service, { merge, service }: DerivedRequest): Service {
  const { sessionAffinityConfig: _config, trafficDistribution: _distribution, ...kept } = present.spec ?? {};
  const labels = { ...present.metadata.labels, [managedByLabel]: managerName, [derivedForLabel]: service.name };
  return { ...present, metadata: { ...present.metadata, labels }, spec: { ...kept, ...planTraffic(merge) } };
}

function planTraffic(merge: Merge): ServiceSpec {
  const { sessionAffinity, affinityTimeoutSeconds: timeoutSeconds, internalTrafficPolicy, trafficDistribution } = merge;
  return {
    ports: merge.ports
      .filter(({ isExposed }) => isExposed)
      .map(({ name, protocol, port, appProtocol }) => ({
        ...(name === '' ? {} : { name }),
        protocol,
        port,
        targetPort: port,
        appProtocol,
      })),
    sessionAffinity,
    ...(timeoutSeconds === undefined ? {} : { sessionAffinityConfig: { clientIP: { timeoutSeconds } } }),
    internalTrafficPolicy: internalTrafficPolicy ?? 'Cluster',
    trafficDistribution,
  };
}
