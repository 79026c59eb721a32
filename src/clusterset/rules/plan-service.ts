// The Service that a FederatedService asks for in this cluster, given the one that is there. The home adds to a Service what
// the template leaves open (addresses, node ports), and people may too: only what the template says, or said when it was
// last applied, is touched. Pure.

import type { Service, ServicePort, ServiceSpec } from '../../kube/objects/service.ts';
import type { FederatedService } from '../kinds/federated-service.ts';
import { madeAnnotation, madeMark, placementLabel } from './agent-marks.ts';
import { parseRecordName } from './names.ts';

/** On placed Services: what the template said when it was last applied, so that what it no longer says can be taken away. */
export const appliedAnnotation = 'portolan.dev/applied-template';

interface Applied {
  readonly annotations: readonly string[];
  readonly spec: ServiceSpec;
}

/** Undefined if its name is not that of a service. */
export function serviceFor(template: FederatedService, clusterId: string): Service | undefined {
  const service = serviceFromTemplate(template);
  if (service === undefined) return undefined;
  const { metadata, spec } = service;
  const applied: Applied = { annotations: Object.keys(metadata.annotations ?? {}), spec: spec ?? {} };
  return {
    ...service,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, [placementLabel]: template.metadata.name },
      annotations: {
        ...metadata.annotations,
        [madeAnnotation]: madeMark(metadata, clusterId),
        [appliedAnnotation]: JSON.stringify(applied),
      },
    },
  };
}

export function withTemplate(present: Service, wanted: Service): Service {
  const applied = appliedTo(present);
  return {
    ...present,
    metadata: {
      ...present.metadata,
      labels: wanted.metadata.labels,
      annotations: { ...without(present.metadata.annotations, applied.annotations), ...wanted.metadata.annotations },
    },
    spec: fitted(
      {
        ...without(present.spec, Object.keys(applied.spec)),
        ...wanted.spec,
        ports: portsOf(present, wanted, applied),
      },
      wanted.spec,
    ),
  };
}

/** The reason why a Service cannot be changed into the wanted one; undefined if it can. */
export function whyMadeAnew(present: Service, wanted: Service): string | undefined {
  const [is, should] = [present.spec ?? {}, wanted.spec ?? {}];
  if (is.type === 'ExternalName' || should.type === 'ExternalName') return undefined;
  const ips = [is.clusterIP, should.clusterIP];
  if ((ips[0] === 'None') !== (ips[1] === 'None') || (ips[1] && ips[0] !== ips[1]))
    return `clusterIP ${ips[0] ?? 'allocated'} cannot be changed to ${ips[1] ?? 'an allocated one'}`;
  const [family, wantedFamily] = [is.ipFamilies?.[0], should.ipFamilies?.[0]];
  if (family === undefined || wantedFamily === undefined || family === wantedFamily) return undefined;
  return `its first family, ${family}, cannot be changed to ${wantedFamily}`;
}

function portsOf(present: Service, wanted: Service, applied: Applied): ServicePort[] {
  const find = (ports: readonly ServicePort[] | undefined, like: ServicePort) =>
    ports?.find((one) => one.port === like.port && (one.protocol ?? 'TCP') === (like.protocol ?? 'TCP'));
  return (wanted.spec?.ports ?? []).map((port) => ({
    ...without(find(present.spec?.ports, port), Object.keys(find(applied.spec.ports, port) ?? {})),
    ...port,
  }));
}

// Defaults that the home filled in for another type or affinity would be refused beside this one.
function fitted(spec: ServiceSpec, said: ServiceSpec = {}): ServiceSpec {
  const gone: string[] = [];
  if (spec.sessionAffinity !== 'ClientIP') gone.push('sessionAffinityConfig');
  const isInternal = spec.type === undefined || spec.type === 'ClusterIP' || spec.type === 'ExternalName';
  if (isInternal) gone.push('externalTrafficPolicy', 'healthCheckNodePort');
  if (spec.type !== 'LoadBalancer') gone.push('allocateLoadBalancerNodePorts', 'loadBalancerClass');
  const ports = spec.ports?.map((port) => {
    const isSaid = said.ports?.some((one) => one.nodePort !== undefined && one.nodePort === port.nodePort);
    return isInternal && !isSaid ? without(port, ['nodePort']) : port;
  });
  return {
    ...without(
      spec,
      gone.filter((field) => !(field in said)),
    ),
    ...(ports === undefined ? {} : { ports }),
  };
}

function appliedTo(present: Service): Applied {
  try {
    const { annotations, spec } = JSON.parse(
      present.metadata.annotations?.[appliedAnnotation] ?? '{}',
    ) as Partial<Applied>;
    return { annotations: Array.isArray(annotations) ? annotations : [], spec: spec ?? {} };
  } catch {
    return { annotations: [], spec: {} };
  }
}

function without<T extends object>(object: T | undefined, keys: readonly string[]): T {
  return Object.fromEntries(Object.entries(object ?? {}).filter(([key]) => !keys.includes(key))) as T;
}

/** The Service that a cluster makes of it; undefined if its name is not that of a service. */
export function serviceFromTemplate(federated: FederatedService): Service | undefined {
  const key = parseRecordName(federated.metadata.name);
  if (key === undefined) return undefined;
  const { labels, annotations, spec } = structuredClone(federated.spec.template);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: key.name,
      namespace: key.namespace,
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec,
  };
}
