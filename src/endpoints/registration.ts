// A process on some machine that a person put behind a Service: its name, its EndpointSlice, and its health check.
// Pure; `register` writes it, the registration controller keeps its readiness.

import { parseIp } from '../base/net/ip.ts';
import { digestOf } from '../kube/objects/bounded-name.ts';
import {
  type EndpointPort,
  type EndpointSlice,
  serviceNameLabel,
  sliceManagedByLabel,
} from '../kube/objects/endpoint-slice.ts';
import type { Service } from '../kube/objects/service.ts';
import type { HealthCheck } from './health-check.ts';

export const registrationManager = 'registration.portolan.dev';
/** On a registered slice: how to find out whether the process is well. */
export const checkAnnotation = 'portolan.dev/check';
/** On a Service that `register` made because there was none. */
export const madeByAnnotation = 'portolan.dev/made-by';
export const madeByRegister = 'register';

export interface Registration {
  readonly namespace: string;
  readonly service: string;
  readonly address: string;
  /** With the names of the Service's ports. */
  readonly ports: readonly Required<Pick<EndpointPort, 'name' | 'protocol' | 'port'>>[];
  readonly check?: HealthCheck;
  readonly zone?: string;
}

/** The same process has the same name: registering again finds what is there. Another port is another process. */
export function registrationName({ service, address, ports }: Registration): string {
  const texts = ports.map(({ name, protocol, port }) => `${name}=${port}/${protocol}`).sort();
  return `${service}-reg-${digestOf(`${address} ${texts.join(' ')}`).slice(0, 10)}`;
}

/** `present` is what the last registration of this process left: a known readiness is not forgotten. */
export function registrationSlice(
  registration: Registration,
  owner: Service,
  present: EndpointSlice | undefined,
): EndpointSlice {
  const { namespace, service, address, ports, check, zone } = registration;
  const isReady = check === undefined || present?.endpoints[0]?.conditions?.ready === true;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...(present?.metadata ?? { name: registrationName(registration), namespace }),
      labels: {
        'app.kubernetes.io/managed-by': 'portolan',
        [serviceNameLabel]: service,
        [sliceManagedByLabel]: registrationManager,
      },
      annotations: check === undefined ? {} : { [checkAnnotation]: JSON.stringify(check) },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: service, uid: owner.metadata.uid ?? '' }],
    },
    addressType: parseIp(address)?.family ?? 'IPv4',
    endpoints: [
      {
        addresses: [address],
        conditions: { ready: isReady, serving: isReady, terminating: false },
        zone,
      },
    ],
    ports: [...ports],
  };
}

/** The ports of a Service under which a process with these ports can be found, or what is wrong. */
export type PortMatch =
  | { readonly kind: 'matched'; readonly ports: Registration['ports'] }
  | { readonly kind: 'mismatch'; readonly problem: string };

export function matchPorts(service: Service, wanted: Registration['ports']): PortMatch {
  const offered = service.spec?.ports ?? [];
  const [onlyOffered, onlyWanted] = [offered[0], wanted[0]];
  if (offered.length === 1 && wanted.length === 1 && onlyWanted?.name === '') {
    // One port on either side: no name is needed to know which is meant.
    const name = onlyOffered?.name ?? '';
    if ((onlyOffered?.protocol ?? 'TCP') === onlyWanted.protocol)
      return { kind: 'matched', ports: [{ ...onlyWanted, name }] };
  }
  for (const port of wanted) {
    const found = offered.find(({ name = '', protocol = 'TCP' }) => name === port.name && protocol === port.protocol);
    if (found !== undefined) continue;
    const known = offered.map(
      ({ name = '', protocol = 'TCP', port: number }) => `${name || '(no name)'} ${number}/${protocol}`,
    );
    const problem = `it has no port named ${JSON.stringify(port.name)} for ${port.protocol}; its ports: ${known.join(', ') || 'none'}`;
    return { kind: 'mismatch', problem };
  }
  return { kind: 'matched', ports: wanted };
}
