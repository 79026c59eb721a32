// One Pod as an endpoint of one Service, and the ports under which it is reached. Pure.

import { type IpFamily, parseIp } from '../base/net/ip.ts';
import type { Endpoint, EndpointPort } from '../kube/objects/endpoint-slice.ts';
import type { NodeFacts, PodFacts, ServiceFacts } from './facts.ts';

/** Endpoints that share a family and the same ports can lie in one slice. */
export interface EndpointGroup {
  readonly family: IpFamily;
  readonly ports: readonly EndpointPort[];
  readonly endpoints: Endpoint[];
}

export function groupKey(family: string, ports: readonly EndpointPort[]): string {
  const texts = ports.map(({ name, protocol, port, appProtocol }) =>
    [name ?? '', protocol ?? 'TCP', port ?? '', appProtocol ?? ''].join(' '),
  );
  return `${family}|${texts.sort().join('|')}`;
}

export interface GroupRequest {
  readonly service: ServiceFacts;
  readonly pods: Iterable<PodFacts>;
  readonly node: (name: string) => NodeFacts | undefined;
}

/** Every endpoint the Service should have, by group key. */
export function groupEndpoints({ service, pods, node }: GroupRequest): Map<string, EndpointGroup> {
  const groups = new Map<string, EndpointGroup>();
  for (const pod of pods) {
    const ports = portsOf(service, pod);
    for (const family of service.families) {
      const address = pod.ips.find((ip) => parseIp(ip)?.family === family);
      if (address === undefined) continue;
      const key = groupKey(family, ports);
      const group = groups.get(key) ?? { family, ports, endpoints: [] };
      groups.set(key, group);
      group.endpoints.push(endpointOf(service, pod, { address, zone: node(pod.nodeName ?? '')?.zone }));
    }
  }
  return groups;
}

function endpointOf(service: ServiceFacts, pod: PodFacts, at: { address: string; zone: string | undefined }): Endpoint {
  const isReady = service.publishesNotReady || (pod.isReady && !pod.isTerminating);
  const hasHostname = pod.hostname !== undefined && pod.hostname !== '' && pod.subdomain === service.name;
  return {
    addresses: [at.address],
    conditions: { ready: isReady, serving: pod.isReady, terminating: pod.isTerminating },
    ...(hasHostname ? { hostname: pod.hostname } : {}),
    nodeName: pod.nodeName,
    zone: at.zone,
    targetRef: { kind: 'Pod', namespace: pod.namespace, name: pod.name, uid: pod.uid },
  };
}

/** A named target port that this Pod does not have is left out, as Kubernetes does. */
function portsOf(service: ServiceFacts, pod: PodFacts): EndpointPort[] {
  const ports: EndpointPort[] = [];
  for (const { name = '', protocol = 'TCP', port, targetPort, appProtocol } of service.ports) {
    const target = targetPort === undefined || targetPort === 0 || targetPort === '' ? port : targetPort;
    const number =
      typeof target === 'number'
        ? target
        : pod.namedPorts.find((named) => named.name === target && named.protocol === protocol)?.port;
    if (number === undefined) continue;
    ports.push({ name, protocol, port: number, appProtocol });
  }
  return ports;
}
