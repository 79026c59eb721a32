// Which certificate authorities of the broker a member trusts, as it says in its lease: before the old one goes, the admin has
// to know that every member has the new one. Pure.

import { createHash } from 'node:crypto';
import type { KubernetesObject } from '../../../kube/objects/object.ts';

const trustAnnotation = 'portolan.dev/trusted-authorities';
/** A rotation has two; more than a few are a mistake. */
const authoritiesMax = 8;

/** Short fingerprints of the certificates in PEM text. */
export function authorityFingerprints(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  return blocks.slice(0, authoritiesMax).map((block) => {
    const der = Buffer.from(block.replace(/-----[A-Z ]+-----/g, ''), 'base64');
    return createHash('sha256').update(der).digest('hex').slice(0, 16);
  });
}

/** Nothing for a broker that is trusted through the authorities of the system. */
export function trustAnnotations(pem: string | undefined): Record<string, string> {
  return pem ? { [trustAnnotation]: authorityFingerprints(pem).join(',') } : {};
}

/** Whether the holder of the lease has said that it trusts all of them. */
export function trustsAll(lease: KubernetesObject | undefined, fingerprints: readonly string[]): boolean {
  const said = new Set((lease?.metadata.annotations?.[trustAnnotation] ?? '').split(','));
  return fingerprints.every((one) => said.has(one));
}

/** Adds to an error of a connection to the broker what happened and how to return, if it is about the broker's certificate. */
export function withCertificateAdvice(error: string, clusterId: string): string {
  if (!/self.signed|unable to (verify|get).*(certificate|issuer)|local issuer|unknown ca/i.test(error)) return error;
  return `${error}: no authority that this cluster trusts has signed the broker's certificate; if it was replaced (portolan api rotate-ca) while this cluster was away, run portolan leave --offline here and join again with what portolan broker token ${clusterId} --renew gives`;
}
