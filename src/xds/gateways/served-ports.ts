// What a gateway serves of one exported service: each port of a service with an address, with all of its ready endpoints; of a
// headless one each endpoint by itself, at the ports that it listens on. Pure; the order of slices does not show in the result.

import { carriedLabels, endpointLabel } from '../../clusterset/rules/networks/virtual-endpoints.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import { endpointsOf, type OwnEndpoint } from '../own-endpoints.ts';
import { endpointHost, udpHost } from './names.ts';
import type { ExportedPort } from './service.ts';

export interface ServedPort {
  readonly exported: ExportedPort;
  readonly endpoints: readonly OwnEndpoint[];
}

export interface ServedService {
  /** All but the port, with the name of the service. */
  readonly exported: Omit<ExportedPort, 'port'>;
  readonly isHeadless: boolean;
  /** Numbers of exposed ports, with their names in the slices. */
  readonly ports: readonly { readonly port: number; readonly slicePort: string; readonly isUdp?: boolean }[];
  readonly slices: readonly EndpointSlice[];
  /** Id of this cluster. */
  readonly cluster: string;
}

export function servedPortsOf(service: ServedService): ServedPort[] {
  return service.isHeadless ? endpointPorts(service) : servicePorts(service);
}

function servicePorts({ exported, ports, slices }: ServedService): ServedPort[] {
  if (ports.length === 0) return [];
  const byTcp = endpointsOf(slices);
  const byUdp = ports.some(({ isUdp }) => isUdp) ? endpointsOf(slices, 'UDP') : byTcp;
  return ports.map(({ port, slicePort, isUdp = false }) => ({
    exported: isUdp ? { ...exported, port, isUdp, host: udpHost(exported.host), addresses: [] } : { ...exported, port },
    endpoints: (isUdp ? byUdp : byTcp).get(slicePort) ?? [],
  }));
}

/** Those that are not ready have a way without an endpoint: their connections go on when they are ready again. */
function endpointPorts({ exported, ports, slices, cluster }: ServedService): ServedPort[] {
  // UDP of headless services is not carried.
  const names = new Set(ports.filter(({ isUdp }) => !isUdp).map(({ slicePort }) => slicePort));
  const byLabel = Map.groupBy(slices.flatMap(singleEndpoints), ({ label }) => label);
  return carriedLabels(byLabel.keys()).flatMap((label) => {
    const own = byLabel.get(label)!.map(({ slice }) => slice);
    const ready = endpointsOf(own);
    const numbers = new Set(own.flatMap((slice) => portNumbers(slice, names)));
    const host = endpointHost({ label, cluster }, exported.host);
    return [...numbers]
      .sort((one, other) => one - other)
      .map((port) => {
        const endpoints = [...ready].flatMap(([name, some]) => (names.has(name) ? some : []));
        return {
          exported: { ...exported, host, port },
          endpoints: endpoints.filter((endpoint) => endpoint.port === port),
        };
      });
  });
}

interface SingleEndpoint {
  readonly label: string;
  /** With this endpoint alone. */
  readonly slice: EndpointSlice;
}

function singleEndpoints(slice: EndpointSlice): SingleEndpoint[] {
  if (slice.addressType === 'FQDN') return [];
  return (slice.endpoints ?? []).flatMap((endpoint) => {
    const label = endpoint ? endpointLabel(endpoint) : undefined;
    return label === undefined ? [] : [{ label, slice: { ...slice, endpoints: [endpoint] } }];
  });
}

function portNumbers({ ports }: EndpointSlice, names: ReadonlySet<string>): number[] {
  return (ports ?? [])
    .filter(({ name, protocol }) => names.has(name ?? '') && (protocol ?? 'TCP') === 'TCP')
    .flatMap(({ port }) => port ?? []);
}
