// Whether connections between two meshes lead anywhere: from us to the services of a peer, and from peers to our ingress.
// The catalog may be in step while no Envoy carries a connection. Pure.

import type { WantedCondition } from '../../kube/objects/conditions.ts';
import { type DataPlane, notCarriedBy } from '../../kube/objects/reports/data-plane.ts';

export interface IngressTarget {
  readonly address: string;
  readonly port: number;
  /** The id of a service that is reached there. */
  readonly serverName: string;
}

/** `why` is empty for one that answers. */
export interface TriedIngress {
  readonly at: string;
  readonly why: string;
}

/** On a Peer. */
export const reachableCondition = 'ServicesReachable';
export const servedCondition = 'IngressServed';

export interface TakingFacts {
  /** Services of the peer that we hold. */
  readonly services: number;
  readonly sidecars: DataPlane;
  /** The peer's ingresses, as far as they were tried. */
  readonly ingress: readonly TriedIngress[];
}

/** Undefined while nothing is known of it. */
export function servicesReachable({ services, sidecars, ingress }: TakingFacts): WantedCondition | undefined {
  const type = reachableCondition;
  if (services === 0) return { type, status: 'True', reason: 'NothingTaken', message: 'it shares no service with us' };
  if (sidecars.kind === 'unknown') return undefined;
  const away = ingress.filter(({ why }) => why !== '');
  const missing = notCarriedBy(sidecars, 'the names of its services resolve');
  if (ingress.length > 0 && away.length === ingress.length) {
    const also = missing === undefined ? '' : `; ${missing.message}`;
    const message = `its ingress does not answer: ${listed(away)}${also}`;
    return { type, status: 'False', reason: 'IngressAway', message };
  }
  if (missing !== undefined) return { type, ...missing };
  if (away.length > 0)
    return {
      type,
      status: 'True',
      reason: 'SomeIngressAway',
      message: `not all of its ingresses answer: ${listed(away)}`,
    };
  const tried = ingress.length === 0 ? '' : ', and its ingress answers';
  return {
    type,
    status: 'True',
    reason: 'Reachable',
    message: `an Envoy of this cluster has the configuration${tried}`,
  };
}

export interface GivingFacts {
  readonly envoys: DataPlane;
  readonly ingress: readonly TriedIngress[];
}

/** Why peers cannot connect to what we share; empty if they can, undefined while that is not known. */
export function ingressProblem({ envoys, ingress }: GivingFacts): string | undefined {
  if (envoys.kind === 'programmed' || ingress.some(({ why }) => why === '')) return '';
  if (envoys.kind === 'unknown') return undefined;
  const tried = ingress.length === 0 ? '' : `, and the ingress that peers are told does not answer: ${listed(ingress)}`;
  if (envoys.kind === 'away') return ingress.length === 0 ? undefined : `no portolan xds has reported lately${tried}`;
  return `no Envoy of role ingress has a configuration${tried}; start one (portolan xds bootstrap --role ingress, or ingress.enabled of the chart)`;
}

/** Undefined while it is not known. */
export function ingressServed(shared: number, facts: GivingFacts): WantedCondition | undefined {
  const type = servedCondition;
  if (shared === 0) return { type, status: 'True', reason: 'NothingShared', message: 'no service is shared with it' };
  const problem = ingressProblem(facts);
  if (problem === undefined) return undefined;
  if (problem === '')
    return { type, status: 'True', reason: 'Served', message: 'an ingress takes connections of peers' };
  return { type, status: 'False', reason: 'IngressAway', message: problem };
}

const shownMax = 4;

function listed(away: readonly TriedIngress[]): string {
  const more = away.length > shownMax ? `, and ${away.length - shownMax} more` : '';
  const shown = away.slice(0, shownMax).map(({ at, why }) => `${at} (${why})`);
  return shown.join(', ') + more;
}
