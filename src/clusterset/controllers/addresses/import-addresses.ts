// The clusterset IPs of one import: one per family that the service and this clusterset have. An address once held stays
// for as long as the import lives.

import type { Allocator } from '../../../addresses/allocator.ts';
import type { AddressOwner } from '../../../addresses/candidates.ts';
import type { IpFamily } from '../../../base/net/ip.ts';
import type { AgentContext } from '../../copies/context.ts';
import type { CountedRecord } from '../../copies/counted-records.ts';
import { type ServiceImport, serviceImportType } from '../../kinds/service-import.ts';
import type { Merge } from '../../rules/merge/merged.ts';
import type { ServiceKey } from '../../rules/names.ts';

export interface HeldAddresses {
  readonly ips: readonly string[];
  /** Families of the service for which this clusterset has no range. */
  readonly unsupported: readonly IpFamily[];
  /** Families whose range has no address left. */
  readonly exhausted: readonly IpFamily[];
  /** Families of the service that no Pod of this cluster has. */
  readonly absent?: readonly IpFamily[];
  /** Why there is no derived Service, or none as it should be. */
  readonly problem?: string;
  /** False if the addresses are not those of the derived Service that the policy asks for. */
  readonly isDerived?: boolean;
  /** When to try again; nothing would tell that a right was granted. */
  readonly retryMs?: number;
}

export const nothingHeld: HeldAddresses = { ips: [], unsupported: [], exhausted: [] };

export interface AddressFacts {
  readonly service: ServiceKey;
  readonly present: ServiceImport | undefined;
  readonly merge: Merge;
  readonly records: readonly CountedRecord[];
}

export function importOwner(service: ServiceKey): AddressOwner {
  return { kind: serviceImportType.kind, namespace: service.namespace, name: service.name };
}

/** From the set's own range. */
export async function holdAddresses(
  context: AgentContext,
  allocator: Allocator,
  { service, present, merge, records }: AddressFacts,
): Promise<HeldAddresses> {
  const policy = context.policy();
  const ips: string[] = [];
  const unsupported: IpFamily[] = [];
  const exhausted: IpFamily[] = [];
  const owner = importOwner(service);
  const addresses = { present: present?.spec.ips ?? [], wishes: deciderIps(merge, records) };
  for (const family of merge.ipFamilies.length === 0 ? (['IPv4'] as const) : merge.ipFamilies) {
    const range = policy.ranges.get(family);
    // A range may be taken away while an import still has an address of it: a live import's address never changes.
    const live = range === undefined ? allocator.holding(owner, family, addresses.present) : undefined;
    if (live !== undefined) ips.push(live);
    else if (range === undefined) unsupported.push(family);
    else {
      const held = await allocator.hold({ owner, range, ...addresses });
      if (held.kind === 'held') ips.push(held.address);
      else exhausted.push(family);
    }
  }
  return { ips, unsupported, exhausted };
}

function deciderIps(merge: Merge, records: readonly CountedRecord[]): readonly string[] {
  return records.find(({ cluster }) => cluster === merge.decider.cluster)?.record.spec.clusterSetIPs ?? [];
}
