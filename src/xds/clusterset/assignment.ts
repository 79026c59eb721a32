// The endpoints of one port as Envoy and gRPC take them: grouped by locality, the nearer groups with smaller priorities.
// The one locality rule decides what is near. Pure; the order of the input never matters.

import type { JsonObject } from '../../base/json.ts';
import { type Place, preferenceOf, tierOf } from '../../catalog/routing/locality.ts';
import type { SetLocality } from '../../clusterset/rules/locality.ts';
import { socketAddress } from '../bodies.ts';
import type { ServiceEndpoint } from './service.ts';

export interface AssignmentInput {
  readonly name: string;
  readonly endpoints: readonly ServiceEndpoint[];
  readonly from: Place;
  readonly locality: SetLocality;
  readonly trafficDistribution: string | undefined;
}

interface Group {
  readonly place: Place;
  readonly tier: number;
  readonly endpoints: ServiceEndpoint[];
}

export function assignmentOf({ name, endpoints, from, locality, trafficDistribution }: AssignmentInput): JsonObject {
  const isNearestFirst = preferenceOf(locality.preference, trafficDistribution) === 'NearestFirst';
  const groups = new Map<string, Group>();
  for (const endpoint of endpoints) {
    const place = placeOf(endpoint, locality);
    const key = [place.region, place.zone, place.cluster].join(' ');
    const group = groups.get(key) ?? { place, tier: isNearestFirst ? tierOf(from, place) : 0, endpoints: [] };
    groups.set(key, group);
    group.endpoints.push(endpoint);
  }
  // gRPC refuses a gap in the numbers.
  const tiers = [...new Set([...groups.values()].map(({ tier }) => tier))].sort((one, other) => one - other);
  const ordered = [...groups].sort(([a, one], [b, other]) => one.tier - other.tier || (a < b ? -1 : 1));
  return {
    cluster_name: name,
    endpoints: ordered.map(([, group]) => localityGroup(group, tiers.indexOf(group.tier))),
  };
}

function localityGroup({ place, endpoints }: Group, priority: number): JsonObject {
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

function placeOf({ cluster, zone }: ServiceEndpoint, { clusters }: SetLocality): Place {
  const known = clusters.get(cluster);
  return { cluster, zone: zone || known?.zone || '', region: known?.region ?? '' };
}
