// The ready endpoints behind one port of an imported service, as connections go to them. Pure.

import { formatAddress } from '../../base/net/ip.ts';
import type { NamedSlice } from '../facts/facts.ts';
import type { PortFacts } from '../facts/ports.ts';

export type Family = 'IPv4' | 'IPv6';

export interface Target {
  /** In its shortest form. */
  readonly address: string;
  readonly port: number;
  readonly cluster: string;
  /** Absent if the endpoint has none of its own. */
  readonly zone?: string;
}

export function familyOf(address: Uint8Array): Family {
  return address.length === 4 ? 'IPv4' : 'IPv6';
}

export interface TargetsRequest {
  readonly port: Pick<PortFacts, 'name' | 'protocol'>;
  readonly slices: readonly NamedSlice[];
  /** Both if absent. */
  readonly family?: Family;
  /** Whether an endpoint may be used at all. */
  readonly isUsable?: (address: string, cluster: string) => boolean;
}

/** Each address and port once. */
export function targetsOf({ port, slices, family, isUsable }: TargetsRequest): Target[] {
  const targets = new Map<string, Target>();
  for (const slice of slices) {
    // A cluster that does not expose the port has no such port in its slices. A slice without a cluster is nobody's.
    const target = slice.ports.find(({ name, protocol }) => name === port.name && protocol === port.protocol);
    if (target === undefined || slice.cluster === '') continue;
    const { cluster } = slice;
    for (const endpoint of slice.endpoints) {
      if (!endpoint.isReady || (family !== undefined && familyOf(endpoint.address) !== family)) continue;
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
