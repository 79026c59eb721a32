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

export function proxyIdentity(
  domain: string,
  { role, name }: { readonly role: string; readonly name: string },
): string {
  return `${proxyIdentityPrefix(domain)}${role}/${name}`;
}

export function isProxyIdentity(identity: string): boolean {
  return parseSpiffeId(identity)?.path.startsWith(proxyPath) === true;
}
