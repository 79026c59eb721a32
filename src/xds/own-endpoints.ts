// The ready endpoints of a Service of this cluster, by the name of their port, from its slices. Pure; the order of slices and
// of endpoints in them does not show in the result.

import { formatIp, parseIp } from '../base/net/ip.ts';
import { type EndpointSlice, isReady } from '../kube/objects/endpoint-slice.ts';
import { isPort } from './bodies.ts';
import type { CarriedProtocol } from './own-ports.ts';

export interface OwnEndpoint {
  readonly address: string;
  readonly port: number;
}

const endpointsMax = 20_000;

/** At ports of one protocol; of TCP if none is named. */
export function endpointsOf(
  slices: readonly EndpointSlice[],
  wanted: CarriedProtocol = 'TCP',
): Map<string, OwnEndpoint[]> {
  const found = new Map<string, Map<string, OwnEndpoint>>();
  let count = 0;
  for (const slice of slices) {
    if (slice.addressType === 'FQDN') continue;
    for (const { name = '', port, protocol = 'TCP' } of listOf(slice.ports)) {
      if (protocol !== wanted || !isPort(port)) continue;
      const byAddress = found.get(name) ?? new Map<string, OwnEndpoint>();
      found.set(name, byAddress);
      for (const endpoint of listOf(slice.endpoints)) {
        if (!endpoint || !isReady(endpoint) || count >= endpointsMax) continue;
        // All addresses of one endpoint are alike; the first is the one to use.
        const [address] = addressIn(listOf(endpoint.addresses)[0]);
        if (address === undefined) continue;
        count += 1;
        byAddress.set(`${address} ${port}`, { address, port: port! });
      }
    }
  }
  return new Map([...found].map(([name, byAddress]) => [name, inOrder(byAddress)]));
}

// The order of slices and of endpoints in them must not show in the bytes.
function inOrder(byAddress: ReadonlyMap<string, OwnEndpoint>): OwnEndpoint[] {
  return [...byAddress].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, endpoint]) => endpoint);
}

function addressIn(text: unknown): string[] {
  const ip = typeof text === 'string' ? parseIp(text) : undefined;
  return ip === undefined ? [] : [formatIp(ip)];
}

function listOf<T>(list: readonly T[] | null | undefined): readonly T[] {
  return Array.isArray(list) ? list : [];
}
