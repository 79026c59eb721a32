// What the kernel does with the virtual addresses of a headless service: each leads to the node's Envoy, which asks the gateway
// of its cluster for that one endpoint. Endpoints with addresses of their own need nothing here. Pure.

import { formatAddress } from '../base/net/ip.ts';
import { type EndpointFacts, hasVirtualAddress, type NamedSlice } from '../catalog/facts/facts.ts';
import type { PortFacts } from '../catalog/facts/ports.ts';
import type { Family } from '../catalog/facts/targets.ts';
import type { Backend, PortChoice } from './port-choice.ts';

export interface HeadlessRequest {
  readonly slices: readonly NamedSlice[];
  /** Why an address is not that of this import; undefined if it is. */
  readonly addressProblem: (ip: string) => string | undefined;
  /** The node's Envoy, or why connections to the cluster are not carried: then they are refused. */
  readonly wayTo: (cluster: string, family: Family) => Pick<Backend, 'address' | 'port'> | string;
  readonly problems: Set<string>;
}

export function headlessPorts({ slices, addressProblem, wayTo, problems }: HeadlessRequest): PortChoice[] {
  const choices = new Map<string, PortChoice>();
  for (const { cluster, ports, endpoints } of slices)
    for (const endpoint of endpoints) {
      if (!hasVirtualAddress(endpoint)) continue;
      const ip = formatAddress(endpoint.address);
      const problem = addressProblem(ip);
      if (problem !== undefined) {
        problems.add(problem);
        continue;
      }
      const way = wayTo(cluster, endpoint.behindGateway!);
      if (typeof way === 'string') problems.add(`endpoints of cluster ${cluster} are not reached: ${way}`);
      const backends: readonly Backend[] =
        typeof way === 'string' || !endpoint.isReady
          ? []
          : [{ ...way, cluster, via: cluster, isBehindGateway: true, isAskedByName: true, isOneEndpoint: true }];
      for (const port of ports) if (port.protocol === 'TCP') add(choices, choiceOf(ip, port, { endpoint, backends }));
    }
  return [...choices.values()];
}

interface Found {
  readonly endpoint: EndpointFacts;
  readonly backends: readonly Backend[];
}

function choiceOf(ip: string, { protocol, port }: PortFacts, { endpoint, backends }: Found): PortChoice {
  return { ip, family: endpoint.behindGateway!, protocol, port, backends, affinitySeconds: 0 };
}

/** An address that two slices name: the one that leads somewhere counts. */
function add(choices: Map<string, PortChoice>, choice: PortChoice): void {
  const key = `${choice.ip} ${choice.port}`;
  if (choices.has(key) && choice.backends.length === 0) return;
  choices.set(key, choice);
}
