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

const accountPattern = /^system:serviceaccount:([^:]+):([^:]+)$/;

export interface TokenBearer {
  readonly username: string;
  readonly pod: string;
}

export interface TokenRules {
  readonly cluster: string;
  /** NAMESPACE/ACCOUNT of workloads whose Pods may have a sidecar. */
  readonly sidecarAccounts: ReadonlySet<string>;
}

export function proxyOfToken(
  { username, pod }: TokenBearer,
  { cluster, sidecarAccounts }: TokenRules,
): { readonly identity: ProxyIdentity } | { readonly reason: string } {
  const [namespace = '', account = ''] = accountPattern.exec(username)?.slice(1) ?? [];
  const role = namespace === systemNamespace ? rolesOfAccounts.get(account) : undefined;
  const isWorkload = role === undefined && sidecarAccounts.has(`${namespace}/${account}`);
  if (role === undefined && !isWorkload) return { reason: `${username} is no account of an Envoy` };
  const identity: ProxyIdentity = isWorkload
    ? // Pods of two namespaces may have one name.
      { role: 'sidecar', cluster, name: pod === '' ? '' : `${namespace}.${pod}`, workload: { namespace, account } }
    : { role: role!, cluster, name: pod };
  if (parseNodeId(formatNodeId(identity)) === undefined)
    return { reason: 'the token is bound to no Pod; give one of a projected volume' };
  return { identity };
}
