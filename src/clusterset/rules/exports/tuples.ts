// The addresses, protocols and target ports behind a Service of this cluster: what an export of it lets others call. Pure.

import { formatIp, parseIp } from '../../../base/net/ip.ts';
import type { EndpointSlice } from '../../../kube/objects/endpoint-slice.ts';

const protocols: Readonly<Record<string, string>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' };
/** In one slice; Kubernetes has far fewer. */
const tuplesMax = 100_000;

/**
 * Such as `4 10.1.0.7 . tcp . 8080`. Of all endpoints, ready or not: the boundary is the export, and a failed probe must not
 * cut a connection. All addresses of one endpoint are alike; the first is the one to use.
 */
export function tuplesOf(slice: EndpointSlice): string[] {
  const tuples = new Set<string>();
  if (slice.addressType === 'FQDN') return [];
  for (const endpoint of listOf(slice.endpoints)) {
    const [text] = listOf(endpoint?.addresses);
    const ip = typeof text === 'string' ? parseIp(text) : undefined;
    if (ip === undefined) continue;
    const version = ip.family === 'IPv4' ? 4 : 6;
    for (const port of listOf(slice.ports)) {
      const protocol = protocols[port?.protocol ?? 'TCP'];
      if (protocol === undefined || !isPort(port?.port) || tuples.size >= tuplesMax) continue;
      tuples.add(`${version} ${formatIp(ip)} . ${protocol} . ${port.port}`);
    }
  }
  return [...tuples];
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536;
}

function listOf<T>(list: readonly T[] | null | undefined): readonly T[] {
  return Array.isArray(list) ? list : [];
}
