// The endpoints of one port as Envoy and gRPC take them. What gets new connections by one share is one group, so that an endpoint that
// does not answer leaves its part to those alike, as in the kernel; the others follow with later priorities. The one choice decides.
// Pure; the order of the input never matters.

import { compareText } from '../../base/compare-text.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Target } from '../../catalog/facts/targets.ts';
import { type Chooser, choose, placeOfCandidate } from '../../clusterset/rules/choice/choose.ts';
import { speaksNoTunnel } from '../../clusterset/rules/choice/reachable.ts';
import type { SetLocality } from '../../clusterset/rules/locality.ts';
import { socketAddress } from '../bodies.ts';

export interface AssignmentInput extends Omit<Chooser, 'gatewayProblem'> {
  readonly name: string;
  readonly endpoints: readonly Target[];
  readonly unready?: readonly Target[];
}

interface Group {
  readonly locality: Locality;
  readonly priority: number;
  /** Sum over its endpoints. */
  readonly weight: number;
  readonly endpoints: readonly Target[];
}

interface Locality {
  readonly region: string;
  readonly zone: string;
  /** The cluster; names of several are joined. */
  readonly sub_zone: string;
}

export function assignmentOf({ name, endpoints, unready, ...chooser }: AssignmentInput): JsonObject {
  const { lots, later } = choose(endpoints, { ...chooser, gatewayProblem: speaksNoTunnel }, unready);
  const { locality } = chooser;
  const groups = [
    ...lots
      .map(({ share, endpoints: alike }): Group => {
        const weight = lots.length === 1 ? alike.length : share * weightsSum;
        return { locality: commonPlace(alike, locality), priority: 0, weight, endpoints: alike };
      })
      .sort(byLocality),
    ...later.map((tier, index): Group => {
      const weight = tier.length;
      return { locality: commonPlace(tier, locality), priority: index + 1, weight, endpoints: tier };
    }),
  ];
  return { cluster_name: name, endpoints: groups.map(localityGroup), policy: keepsShares };
}

/**
 * A place keeps its share, and a priority all of it, while one endpoint there takes connections: `minReady` says who wants it otherwise.
 * By default Envoy gives parts away once 28 % of the endpoints are left. In percent.
 */
const keepsShares = { overprovisioning_factor: 1_000_000 };

/** Fine enough for any share; the sum of all weights has to fit into 32 bits. */
const weightsSum = 1_000_000;

/** What all of them have in common. No two groups of a priority have the same: a cluster and zone belong to one of them. */
function commonPlace(endpoints: readonly Target[], locality: SetLocality): Locality {
  const places = endpoints.map((endpoint) => placeOfCandidate(endpoint, locality));
  const common = (values: readonly string[]) => (new Set(values).size === 1 ? values[0]! : '');
  return {
    region: common(places.map(({ region }) => region ?? '')),
    zone: common(places.map(({ zone }) => zone ?? '')),
    sub_zone: [...new Set(places.map(({ cluster }) => cluster))].sort(compareText).join('+'),
  };
}

function byLocality({ locality: one }: Group, { locality: other }: Group): number {
  return (
    compareText(one.region, other.region) ||
    compareText(one.zone, other.zone) ||
    compareText(one.sub_zone, other.sub_zone)
  );
}

function localityGroup({ locality, endpoints, priority, weight }: Group): JsonObject {
  return {
    locality: { ...locality },
    lb_endpoints: [...endpoints].sort(byAddress).map(({ address, port }) => ({
      endpoint: { address: socketAddress(address, port) },
      health_status: 'HEALTHY',
    })),
    // gRPC ignores a group without a weight.
    load_balancing_weight: Math.max(1, Math.round(weight)),
    priority,
  };
}

function byAddress(one: Target, other: Target): number {
  return compareText(one.address, other.address) || one.port - other.port;
}
