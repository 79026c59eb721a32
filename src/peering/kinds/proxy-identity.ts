// The identity that a proxy of a mesh shows to the ingresses of peers. It is for calls to services alone: where meshes
// exchange catalogs, it counts as none. Pure.

import { parseSpiffeId } from '../../base/x509/spiffe-id.ts';

const proxyPath = '/portolan/proxy/';

export function meshIdentity(domain: string): string {
  return `spiffe://${domain}/portolan/peering`;
}

export function proxyIdentityPrefix(domain: string): string {
  return `spiffe://${domain}${proxyPath}`;
}

interface Proxy {
  readonly role: string;
  readonly name: string;
  readonly workload?: { readonly namespace: string; readonly account: string };
}

/** Its workload's where it has one: below the path of proxies too, so that no peer takes it for the mesh. */
export function proxyIdentity(domain: string, { role, name, workload }: Proxy): string {
  const path = workload === undefined ? `${role}/${name}` : `ns/${workload.namespace}/sa/${workload.account}`;
  return `${proxyIdentityPrefix(domain)}${path}`;
}

export function isProxyIdentity(identity: string): boolean {
  return parseSpiffeId(identity)?.path.startsWith(proxyPath) === true;
}
