// Virtual addresses for the endpoints of a headless service in other networks, from the set's range: one for each, held for as long
// as the endpoint is exported.

import type { Allocator } from '../../../addresses/allocator.ts';
import type { AgentContext } from '../../copies/context.ts';
import type { CountedRecord } from '../../copies/counted-records.ts';
import type { ServiceKey } from '../../rules/names.ts';
import {
  carriedLabels,
  endpointLabel,
  type VirtualAddresses,
  virtualKey,
} from '../../rules/networks/virtual-endpoints.ts';
import { importOwner } from './import-addresses.ts';

export interface VirtualEndpoints {
  readonly byCluster: ReadonlyMap<string, VirtualAddresses>;
  /** How many ready endpoints of a cluster have none: they are beyond the bound, or the range has no address left. */
  readonly beyond: ReadonlyMap<string, number>;
  /** All of them. */
  readonly addresses: readonly string[];
}

interface VirtualRequest {
  /** Its name here. */
  readonly local: ServiceKey;
  readonly records: readonly CountedRecord[];
}

/** Undefined where nothing carries addresses of the set's range: the endpoints of other networks have none then. */
export async function holdVirtualEndpoints(
  context: AgentContext,
  allocator: Allocator,
  { local, records }: VirtualRequest,
): Promise<VirtualEndpoints | undefined> {
  if (context.clusterSetIps() !== 'allocate') return undefined;
  const byCluster = new Map<string, VirtualAddresses>();
  const beyond = new Map<string, number>();
  for (const { cluster, published } of records) {
    if (!context.networks().clusters.has(cluster)) continue;
    const endpoints = endpointsOf(published(), context.families());
    const carried = new Set(carriedLabels(endpoints.map(({ label }) => label)));
    const addresses = new Map<string, string>();
    let left = 0;
    for (const { label, family, isReady } of endpoints) {
      const key = virtualKey(family, label);
      const address =
        addresses.get(key) ??
        (carried.has(label)
          ? await hold(context, allocator, { local, family, part: `${cluster}/${label}` })
          : undefined);
      if (address !== undefined) addresses.set(key, address);
      else if (isReady) left += 1;
    }
    byCluster.set(cluster, addresses);
    beyond.set(cluster, left);
  }
  return { byCluster, beyond, addresses: [...byCluster.values()].flatMap((addresses) => [...addresses.values()]) };
}

type Family = 'IPv4' | 'IPv6';

interface Labelled {
  readonly label: string;
  readonly family: Family;
  readonly isReady: boolean;
}

function endpointsOf(
  slices: ReturnType<CountedRecord['published']>,
  families: readonly Family[] | undefined,
): Labelled[] {
  return slices.flatMap(({ addressType: family, endpoints }) => {
    if (family === 'FQDN' || families?.includes(family) === false) return [];
    return (endpoints ?? []).flatMap((endpoint) => {
      const label = endpointLabel(endpoint);
      return label === undefined ? [] : [{ label, family, isReady: endpoint.conditions?.ready !== false }];
    });
  });
}

interface HoldRequest {
  readonly local: ServiceKey;
  readonly family: Family;
  readonly part: string;
}

async function hold(
  context: AgentContext,
  allocator: Allocator,
  { local, family, part }: HoldRequest,
): Promise<string | undefined> {
  const owner = { ...importOwner(local), part };
  const range = context.policy().ranges.get(family);
  if (range === undefined) return allocator.holding(owner, family, []);
  const held = await allocator.hold({ owner, range, present: [], wishes: [] });
  return held.kind === 'held' ? held.address : undefined;
}
