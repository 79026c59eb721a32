// The cluster's own name of a service that leads to the service of the clusterset: when it may, and the Service that stands for it
// where the cluster has none. Pure.

import { managedByLabel, managerName } from '../../../kube/objects/ours.ts';
import type { Service } from '../../../kube/objects/service.ts';
import { isOfSystem } from '../may-export.ts';
import type { Merge } from '../merge/merged.ts';
import { formatServiceKey, type ServiceKey } from '../names.ts';
import type { Routing } from './routing.ts';

/** On a Service that the agent made because the cluster has none of that name. */
const standInLabel = 'portolan.dev/stands-in-for';

export interface TransparencyFacts {
  readonly service: ServiceKey;
  readonly clusterId: string;
  readonly hasOwnService: boolean;
  /** The own Service is part of the import. */
  readonly isExportedHere: boolean;
  /** Whether something here carries connections to the address of the import. */
  readonly isCarried: boolean;
  /** Its name leads there already. */
  readonly was: boolean;
}

export interface Transparency {
  readonly isOn: boolean;
  /** Why the wish is not fulfilled, or what holds only because it held before. */
  readonly refusal?: string;
}

/** A name that leads to the clusterset goes on doing so: clients rely on it. Names of the system never do. */
export function judgeTransparency(facts: TransparencyFacts): Transparency {
  const { service, clusterId, hasOwnService, isExportedHere, isCarried, was } = facts;
  const key = formatServiceKey(service);
  if (isOfSystem(service))
    return { isOn: false, refusal: `${key}: a name of the control plane is never led elsewhere` };
  if (hasOwnService && !isExportedHere) {
    const why = `Service ${key} of cluster ${clusterId} is not exported, and its endpoints would be lost: export it or delete it`;
    return { isOn: was, refusal: was ? `${key} leads to the clusterset as before; ${why}` : `${key}: ${why}` };
  }
  if (!isCarried && !was)
    return {
      isOn: false,
      refusal: `${key}: nothing here carries connections to the address of the import; run portolan proxy`,
    };
  return { isOn: true };
}

/** Endpoints of the own cluster come first unless the policy has an order of its own. */
export function withOwnFirst(
  routing: Routing,
  { self, exporters }: { self: string; exporters: readonly string[] },
): Routing {
  const isOwnNamed = routing.groups.length > 0 || routing.excluded.includes(self) || !exporters.includes(self);
  return { ...routing, groups: isOwnNamed ? routing.groups : [{ clusters: [self] }], isTransparent: true };
}

/** A selector makes it somebody's own, whoever made it first. */
export function isStandIn(service: Service | undefined): boolean {
  return (
    service?.metadata.labels?.[standInLabel] !== undefined && Object.keys(service.spec?.selector ?? {}).length === 0
  );
}

export function planStandIn({ namespace, name }: ServiceKey, merge: Merge): Service {
  const ports = merge.ports.filter(({ isExposed }) => isExposed);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, labels: { [managedByLabel]: managerName, [standInLabel]: name } },
    spec: {
      ...(merge.type === 'Headless' ? { clusterIP: 'None' } : { type: 'ClusterIP' }),
      ports: ports.map((port) => ({
        ...(port.name === '' ? {} : { name: port.name }),
        protocol: port.protocol,
        port: port.port,
        targetPort: port.port,
        appProtocol: port.appProtocol,
      })),
    },
  };
}

/** For DNS servers that do not know imports, where there is no such Service. */
export function rewriteFor({ namespace, name }: ServiceKey, zone: string): string {
  const tail = `${name}.${namespace}.svc`;
  return `rewrite name exact ${tail}.cluster.local ${tail}.${zone} answer auto`;
}
