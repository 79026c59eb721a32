// The Envoys of a cluster as its xDS servers and node proxies report them in their Leases: how many of each role have
// acknowledged their configuration, and whether connections are redirected to them. Pure.

import { isObject } from '../../../base/json.ts';
import type { WantedCondition } from '../conditions.ts';
import type { Lease } from '../lease.ts';
import { isForgotten, partLabel, partState } from '../part-lease.ts';

/** In the Lease of an xDS server: a report for each role with a programmed proxy. */
export const programmedAnnotation = 'portolan.dev/xds-programmed';
/** In the Lease of a node proxy that redirects connections to the Envoy of its node. */
export const redirectsAnnotation = 'portolan.dev/redirects';
/** Its values: all connections that need an Envoy, or those to peers' services alone. */
export type Redirected = 'envoy' | 'peers';

export type EnvoyRole = 'sidecar' | 'ingress';

/** Proxies of one role that have acknowledged a listener and are connected. */
export interface ProgrammedProxies {
  readonly proxies: number;
  /** When the first of them acknowledged it, RFC 3339. */
  readonly since: string;
  /** They listen on the addresses of services themselves: no connection has to be redirected to them. */
  readonly isBound?: boolean;
}

export type ProgrammedByRole = Readonly<Partial<Record<EnvoyRole, ProgrammedProxies>>>;

/**
 * `none`: no Envoy of that role has a configuration; `away`: the xDS servers are silent, and Envoys may go on with the last
 * one; `unknown`: the Leases were not read yet.
 */
export type DataPlane =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none'; readonly hasServer: boolean }
  | { readonly kind: 'away' }
  | { readonly kind: 'programmed'; readonly proxies: number; readonly since: string; readonly isRedirected: boolean };

export function formatProgrammed(report: ProgrammedByRole): string {
  return JSON.stringify(report);
}

/** `needed` are the connections in question: a proxy that redirects all of them redirects those of peers too. */
export function dataPlaneOf(
  leases: readonly Lease[],
  role: EnvoyRole,
  nowMs: number,
  needed: Redirected = 'envoy',
): DataPlane {
  const known = leases.filter((lease) => !isForgotten(lease, nowMs));
  const servers = known.filter((lease) => partOf(lease) === 'xds');
  const live = servers.filter((lease) => partState(lease, nowMs).kind === 'reported');
  const reports = live.flatMap((lease) => programmedIn(lease, role) ?? []);
  if (reports.length === 0)
    return servers.length > 0 && live.length === 0 ? { kind: 'away' } : { kind: 'none', hasServer: live.length > 0 };
  return {
    kind: 'programmed',
    proxies: reports.reduce((sum, { proxies }) => sum + proxies, 0),
    since: reports.map(({ since }) => since).sort()[0]!,
    isRedirected:
      role === 'ingress' ||
      reports.some(({ isBound }) => isBound === true) ||
      known.some((lease) => redirects(lease, nowMs, needed)),
  };
}

/** Undefined for a Lease that says nothing of the role, or nonsense. */
function programmedIn({ metadata }: Lease, role: EnvoyRole): ProgrammedProxies | undefined {
  try {
    const all: unknown = JSON.parse(metadata.annotations?.[programmedAnnotation] ?? '{}');
    const one = isObject(all) ? all[role] : undefined;
    if (!isObject(one)) return undefined;
    const { proxies, since, isBound } = one;
    if (typeof proxies !== 'number' || !(proxies > 0) || typeof since !== 'string') return undefined;
    return { proxies, since, ...(isBound === true ? { isBound } : {}) };
  } catch {
    return undefined;
  }
}

function redirects(lease: Lease, nowMs: number, needed: Redirected): boolean {
  const says = lease.metadata.annotations?.[redirectsAnnotation];
  return (
    partOf(lease) === 'proxy' && (says === 'envoy' || says === needed) && partState(lease, nowMs).kind === 'reported'
  );
}

function partOf({ metadata }: Lease): string {
  return metadata.labels?.[partLabel] ?? '';
}

/** Why connections that need a sidecar are not carried, as a condition; undefined if they are. */
export function notCarriedBy(
  plane: DataPlane,
  resolves = 'its name resolves',
): Omit<WantedCondition, 'type'> | undefined {
  if (plane.kind === 'unknown') return { status: 'Unknown', reason: 'Pending', message: notListed };
  if (plane.kind === 'away') return { status: 'Unknown', reason: 'XdsSilent', message: silent };
  if (plane.kind === 'none')
    return {
      status: 'False',
      reason: 'NotProgrammed',
      message: `${resolves} and nothing answers there: ${plane.hasServer ? noEnvoy : noServer}`,
    };
  if (!plane.isRedirected) return { status: 'Unknown', reason: 'NotRedirected', message: notRedirected };
  return undefined;
}

const notListed = 'not known yet whether an Envoy runs here';
const silent =
  'no portolan xds has reported lately: an Envoy that runs goes on with its last configuration, and changes do not reach it';
const noEnvoy =
  'portolan xds runs here, and no Envoy of role sidecar has taken its configuration; start one on each node (portolan xds bootstrap --role sidecar, or envoy.enabled of the chart)';
const noServer =
  'no Envoy in this cluster has the configuration, because no portolan xds runs here; start one with an Envoy on each node (portolan up --envoy, or xds.enabled and envoy.enabled of the chart)';
const notRedirected =
  'an Envoy has its configuration, and no portolan proxy reports that it sends connections there; start portolan proxy with --envoy on each node, unless something else redirects them';
