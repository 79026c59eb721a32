// The identities that may post the stub zone of a federation, and the endpoints of members that it is posted to.
// Pure.

import { parseHostPort } from '../../base/net/host-port.ts';
import { parseRange } from '../../base/net/ip.ts';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import { refusal } from '../../clusterset/rules/endpoint-address.ts';

/** The name in the certificate of the authority of a federation. */
export function posterName(federation: string): string {
  return `portolan federation ${federation}`;
}

export interface ResolverEndpoint {
  readonly endpoint: string;
  /** Base64 of PEM. */
  readonly caBundle?: string;
}

/** The address of an endpoint that a member reported; undefined if it is a name. */
export function addressOf({ endpoint }: ResolverEndpoint): string | undefined {
  const host = /^https:\/\/([^/]+)\/?$/.exec(endpoint)?.[1];
  return host === undefined ? undefined : parseHostPort(host, 443)?.host;
}

/**
 * The set admin's setting takes precedence. An endpoint that a member reports must be an address that is its own to
 * give.
 */
export function resolverOf(cluster: Cluster | undefined): { readonly to?: ResolverEndpoint; readonly why: string } {
  const { spec, status } = cluster ?? {};
  if (spec?.resolver) return { to: spec.resolver, why: '' };
  const reported = status?.resolver;
  if (!reported) return { why: 'no resolver of it has reported an endpoint; start one with --stub-listen' };
  const allowedRanges = (spec?.allowedRanges ?? []).map(parseRange).filter((range) => range !== undefined);
  const problem = refusal(addressOf(reported) ?? '', { virtualRanges: [], allowedRanges });
  if (problem === undefined) return { to: reported, why: '' };
  return { why: `the endpoint ${reported.endpoint} that it reported is refused: ${problem}` };
}
