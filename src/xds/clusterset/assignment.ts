// The endpoints of one port as Envoy and gRPC take them: grouped by locality, the nearer groups with smaller priorities.
// The one choice decides what is near. Pure; the order of the input never matters.

import type { JsonObject } from '../../base/json.ts';
import type { Target } from '../../catalog/facts/targets.ts';
import { type Chooser, choose, placeOfCandidate } from '../../clusterset/rules/choice/choose.ts';
import type { Place } from '../../clusterset/rules/choice/locality.ts';
import { speaksNoTunnel } from '../../clusterset/rules/choice/reachable.ts';
import type { SetLocality } from '../../clusterset/rules/locality.ts';
import { socketAddress } from '../bodies.ts';

export interface AssignmentInput extends Omit<Chooser, 'gatewayProblem'> {
  readonly name: string;
  readonly endpoints: readonly Target[];
  readonly unready?: readonly Target[];
}

interface Group {
  readonly key: string;
  readonly place: Place;
  readonly priority: number;
  /** Of one endpoint. */
  readonly weight: number;
  readonly endpoints: Target[];
}

export function assignmentOf({ name, endpoints, unready, ...chooser }: AssignmentInput): JsonObject {
  const { lots, later } = choose(endpoints, { ...chooser, gatewayProblem: speaksNoTunnel }, unready);
  const { locality } = chooser;
  const groups = [
    ...lots
      .flatMap(({ share, endpoints: alike }) => {
        const weight = lots.length === 1 ? 1 : (share * weightsSum) / alike.length;
        return groupsOf(alike, { locality, priority: 0, weight });
      })
      .sort(byKey),
    ...later.flatMap((tier, index) => groupsOf(tier, { locality, priority: index + 1, weight: 1 })),
  ];
  return { cluster_name: name, endpoints: groups.map(localityGroup) };
}

/** Fine enough for any share; the sum of all weights has to fit into 32 bits. */
const weightsSum = 1_000_000;

interface GroupInput {
  readonly locality: SetLocality;
  readonly priority: number;
  readonly weight: number;
}

/** One for each place, in an order that the input does not change. gRPC refuses a gap in the priorities. */
function groupsOf(endpoints: readonly Target[], { locality, priority, weight }: GroupInput): Group[] {
  const groups = new Map<string, Group>();
  for (const endpoint of endpoints) {
    const place = placeOfCandidate(endpoint, locality);
    const key = [place.region ?? '', place.zone ?? '', place.cluster].join(' ');
    const group = groups.get(key) ?? { key, place, priority, weight, endpoints: [] };
    groups.set(key, group);
    group.endpoints.push(endpoint);
  }
  return [...groups.values()].sort(byKey);
}

function byKey(one: Group, other: Group): number {
  return one.key < other.key ? -1 : 1;
}

function localityGroup({ place, endpoints, priority, weight }: Group): JsonObject {
  return {
    locality: { region: place.region ?? '', zone: place.zone ?? '', sub_zone: place.cluster },
    lb_endpoints: endpoints.map(({ address, port }) => ({
      endpoint: { address: socketAddress(address, port) },
      health_status: 'HEALTHY',
    })),
    // gRPC ignores a group without a weight.
    load_balancing_weight: Math.max(1, Math.round(endpoints.length * weight)),
    priority,
  };
}
