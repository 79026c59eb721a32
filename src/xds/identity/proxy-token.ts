// Which proxy the bearer of a ServiceAccount token is: its account decides the role, the Pod that the token is bound to
// decides the name. Pure.

import { systemNamespace } from '../../kube/objects/ours.ts';
import { formatNodeId, type ProxyIdentity, type ProxyRole, parseNodeId } from './proxy-identity.ts';

/** Path at the discovery server where a Pod of an Envoy gets its first certificate for such a token. */
export const issuancePath = '/portolan/xds/v1/issue';
const rolesOfAccounts: ReadonlyMap<string, ProxyRole> = new Map([
  ['portolan-envoy', 'sidecar'],
  ['portolan-ingress', 'ingress'],
  ['portolan-gateway', 'gateway'],
]);

export interface TokenBearer {
  readonly username: string;
  readonly pod: string;
}

export function proxyOfToken(
  { username, pod }: TokenBearer,
  cluster: string,
): { readonly identity: ProxyIdentity } | { readonly reason: string } {
  const account = username.startsWith(accountPrefix) ? username.slice(accountPrefix.length) : '';
  const role = rolesOfAccounts.get(account);
  if (role === undefined) return { reason: `${username} is no account of an Envoy` };
  const identity = { role, cluster, name: pod };
  if (parseNodeId(formatNodeId(identity)) === undefined)
    return { reason: 'the token is bound to no Pod; give one of a projected volume' };
  return { identity };
}

const accountPrefix = `system:serviceaccount:${systemNamespace}:`;
