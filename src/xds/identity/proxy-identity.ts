// The identity of a proxy: its id names its role and its cluster, and over TLS its certificate must name the same. Pure.

import type { X509Certificate } from 'node:crypto';
import type { Verdict } from '../../base/grpc/server-options.ts';
import { codes } from '../../base/grpc/status.ts';
import { isIssuedBy } from '../../base/x509/certificates.ts';
import type { Life } from './proxy-files.ts';

export const proxyRoles = ['sidecar', 'ingress', 'gateway', 'grpc'] as const;

/**
 * `sidecar`: beside workloads. `ingress`: takes peers' connections. `gateway`: takes those of clusters in other networks.
 * `grpc`: a client without a proxy.
 */
export type ProxyRole = (typeof proxyRoles)[number];

/** A ServiceAccount, in whose name a program calls. */
export interface Workload {
  readonly namespace: string;
  readonly account: string;
}

export interface ProxyIdentity {
  readonly role: ProxyRole;
  readonly cluster: string;
  readonly name: string;
  /** Set for a sidecar beside one workload. */
  readonly workload?: Workload;
}

export interface ProxyCaller {
  /** Undefined on the local socket, where the permissions of the file decide who gets role grpc, which has no secrets. */
  readonly identity: ProxyIdentity | undefined;
  /** Lifetime of its certificate. */
  readonly life?: Life;
}

const idPattern =
  /^(sidecar|ingress|gateway|grpc)~([a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?)~([A-Za-z0-9](?:[A-Za-z0-9._-]{0,127}))$/;
const uriPattern =
  /^spiffe:\/\/portolan\/cluster\/([a-z0-9.-]+)\/xds\/(?:(ingress|gateway|grpc|sidecar)\/([A-Za-z0-9._-]+)|sidecar\/([A-Za-z0-9._-]+)\/ns\/([a-z0-9-]+)\/sa\/([a-z0-9.-]+))$/;
const workloadPattern = /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\/([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)$/;

export function formatNodeId({ role, cluster, name }: ProxyIdentity): string {
  return `${role}~${cluster}~${name}`;
}

export function parseNodeId(id: string): ProxyIdentity | undefined {
  const parts = idPattern.exec(id);
  return parts === null ? undefined : { role: parts[1] as ProxyRole, cluster: parts[2]!, name: parts[3]! };
}

/** NAMESPACE/ACCOUNT; undefined for another text. */
export function parseWorkload(text: string): Workload | undefined {
  const parts = workloadPattern.exec(text);
  return parts === null ? undefined : { namespace: parts[1]!, account: parts[2]! };
}

/** The name in a proxy's certificate. */
export function identityUri({ role, cluster, name, workload }: ProxyIdentity): string {
  const own = `spiffe://portolan/cluster/${cluster}/xds/${role}/${name}`;
  return workload === undefined ? own : `${own}/ns/${workload.namespace}/sa/${workload.account}`;
}

export function judgeProxy(
  presented: readonly X509Certificate[],
  { authority, cluster, nowMs }: { readonly authority: string; readonly cluster: string; readonly nowMs: number },
): Verdict<ProxyCaller> {
  const leaf = presented[0];
  if (leaf === undefined) return refused('no certificate was presented');
  if (!isIssuedBy(leaf.toString(), authority)) return refused(`the certificate was not issued for cluster ${cluster}`);
  if (leaf.ca) return refused('the certificate is that of an authority');
  if (nowMs < leaf.validFromDate.getTime() || nowMs > leaf.validToDate.getTime())
    return refused(`the certificate is valid from ${leaf.validFrom} to ${leaf.validTo}`);
  const identity = identityIn(leaf);
  if (identity === undefined) return refused('the certificate names no proxy');
  if (identity.cluster !== cluster)
    return refused(`the certificate belongs to cluster ${identity.cluster}, this is ${cluster}`);
  const life = { startMs: leaf.validFromDate.getTime(), endMs: leaf.validToDate.getTime() };
  return { kind: 'trusted', caller: { identity, life } };
}

/** The proxy that a certificate names; undefined if it names none, or more than one. */
export function identityIn(certificate: X509Certificate): ProxyIdentity | undefined {
  const uris = (certificate.subjectAltName ?? '').split(', ').filter((name) => name.startsWith('URI:'));
  const parts = uris.length === 1 ? uriPattern.exec(uris[0]!.slice('URI:'.length)) : null;
  if (parts === null) return undefined;
  const [, cluster = '', role, name = '', sidecar = '', namespace = '', account = ''] = parts;
  return role === undefined
    ? { cluster, role: 'sidecar', name: sidecar, workload: { namespace, account } }
    : { cluster, role: role as ProxyRole, name };
}

/** The identity that a node may act as, or the reason why it may not. */
export function admitNode(
  id: string,
  caller: ProxyCaller,
  cluster: string,
): { readonly identity: ProxyIdentity } | { readonly reason: string } {
  const claimed = parseNodeId(id);
  const quoted = JSON.stringify(id.slice(0, 200));
  if (claimed === undefined) return { reason: `node id ${quoted} is unknown; expected ROLE~CLUSTER~NAME` };
  if (claimed.cluster !== cluster) return { reason: `node id ${quoted} is of another cluster, this is ${cluster}` };
  const { identity } = caller;
  if (identity !== undefined && formatNodeId(identity) !== id)
    return { reason: `node id ${quoted} is not that of the certificate, ${formatNodeId(identity)}` };
  // Envoys are given keys: permissions of a file are not enough.
  if (identity === undefined && claimed.role !== 'grpc')
    return { reason: `the local socket is for role grpc; a proxy of role ${claimed.role} connects by mutual TLS` };
  return { identity: identity ?? claimed };
}

function refused(reason: string): Verdict<ProxyCaller> {
  return { kind: 'refused', code: codes.unauthenticated, reason };
}
