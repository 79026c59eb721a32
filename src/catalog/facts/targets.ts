// The ready endpoints behind one port of an imported service, as connections go to them. Pure.

import { formatAddress } from '../../base/net/ip.ts';
import { hasVirtualAddress, type NamedSlice } from './facts.ts';
import type { PortFacts } from './ports.ts';

export type Family = 'IPv4' | 'IPv6';

export interface Target {
  /** In its shortest form; empty behind a gateway. */
  readonly address: string;
  readonly port: number;
  readonly cluster: string;
  /** Absent if the endpoint has none of its own. */
  readonly zone?: string;
  /** Its cluster lies in another network. */
  readonly isBehindGateway?: boolean;
  /** Its gateway has to be asked for the service by name. */
  readonly isAskedByName?: boolean;
}

export function familyOf(address: Uint8Array): Family {
  return address.length === 4 ? 'IPv4' : 'IPv6';
}

export interface TargetsRequest {
  readonly port: Pick<PortFacts, 'name' | 'protocol'>;
  readonly slices: readonly NamedSlice[];
  /** Both if absent. */
  readonly family?: Family;
  /** Those that are not ready, if false. */
  readonly areReady?: boolean;
  /** Whether an endpoint may be used at all. */
  readonly isUsable?: (address: string, cluster: string) => boolean;
}

/** Each address and port once; behind gateways each endpoint. */
export function targetsOf({ port, slices, family, areReady = true, isUsable }: TargetsRequest): Target[] {
  const targets = new Map<string, Target>();
  for (const slice of slices) {
    // A cluster that does not expose the port has no such port in its slices. A slice without a cluster is nobody's.
    const target = slice.ports.find(({ name, protocol }) => name === port.name && protocol === port.protocol);
    if (target === undefined || slice.cluster === '') continue;
    const { cluster } = slice;
    for (const [index, endpoint] of slice.endpoints.entries()) {
      // It stands for one endpoint of a headless service, never for the service.
      if (hasVirtualAddress(endpoint)) continue;
      const ownFamily = endpoint.behindGateway ?? familyOf(endpoint.address);
      if (endpoint.isReady !== areReady || (family !== undefined && ownFamily !== family)) continue;
      if (endpoint.behindGateway !== undefined) {
        const remote = { address: '', port: target.port, cluster, zone: endpoint.zone || undefined };
        const byName = endpoint.isAskedByName ? { isAskedByName: true } : {};
        targets.set(`${slice.name} ${index}`, { ...remote, isBehindGateway: true, ...byName });
        continue;
      }
      const address = formatAddress(endpoint.address);
      if (isUsable !== undefined && !isUsable(address, cluster)) continue;
      const key = `${address} ${target.port}`;
      const known = targets.get(key);
      // Two clusters that claim one address: the same one is named whatever came first.
      if (known !== undefined && known.cluster <= cluster) continue;
      targets.set(key, { address, port: target.port, cluster, zone: endpoint.zone || undefined });
    }
  }
  return [...targets.values()];
}
