// The endpoints of one port as Envoy and gRPC take them: grouped by locality, the nearer groups with smaller priorities.
// The one choice decides what is near. Pure; the order of the input never matters.

import type { JsonObject } from '../../base/json.ts';
import { choose, placeOfCandidate } from '../../catalog/routing/choose.ts';
import type { Place } from '../../catalog/routing/locality.ts';
import { speaksNoTunnel } from '../../catalog/routing/reachable.ts';
import type { Target } from '../../catalog/routing/targets.ts';
import type { SetLocality } from '../../clusterset/rules/locality.ts';
import type { SetNetworks } from '../../clusterset/rules/networks/networks.ts';
import { socketAddress } from '../bodies.ts';

export interface AssignmentInput {
  readonly name: string;
  readonly endpoints: readonly Target[];
  readonly from: Place;
  readonly locality: SetLocality;
  readonly networks: SetNetworks;
  readonly trafficDistribution: string | undefined;
}

interface Group {
  readonly key: string;
  readonly place: Place;
  readonly priority: number;
  readonly endpoints: Target[];
}

export function assignmentOf({ name, endpoints, ...chooser }: AssignmentInput): JsonObject {
  const { tiers } = choose(endpoints, { ...chooser, gatewayProblem: speaksNoTunnel });
  const groups = tiers.flatMap((tier, priority) => groupsOf(tier.endpoints, chooser.locality, priority));
  return { cluster_name: name, endpoints: groups.map(localityGroup) };
}

/** One for each place, in an order that the input does not change. gRPC refuses a gap in the priorities. */
function groupsOf(endpoints: readonly Target[], locality: SetLocality, priority: number): Group[] {
  const groups = new Map<string, Group>();
  for (const endpoint of endpoints) {
    const place = placeOfCandidate(endpoint, locality);
    const key = [place.region ?? '', place.zone ?? '', place.cluster].join(' ');
    const group = groups.get(key) ?? { key, place, priority, endpoints: [] };
    groups.set(key, group);
    group.endpoints.push(endpoint);
  }
  return [...groups.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
}

function localityGroup({ place, endpoints, priority }: Group): JsonObject {
  return {
    locality: { region: place.region ?? '', zone: place.zone ?? '', sub_zone: place.cluster },
    lb_endpoints: endpoints.map(({ address, port }) => ({
      endpoint: { address: socketAddress(address, port) },
      health_status: 'HEALTHY',
    })),
    // gRPC ignores a group without a weight.
    load_balancing_weight: endpoints.length,
    priority,
  };
}
