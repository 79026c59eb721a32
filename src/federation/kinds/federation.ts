// Federation: federated DNS of a clusterset, at the broker in the namespace of the set.

import { isSameJson } from '../../base/json.ts';
import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

export const federationType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'federations',
  kind: 'Federation',
  isNamespaced: true,
};

export type FederationPolicy = 'ordered' | 'nearest-only' | 'local-only-if-healthy';

export interface Federation extends KubernetesObject {
  spec?: FederationSpec;
  status?: FederationStatus;
}

export interface FederationSpec {
  suffix?: string;
  /** Ids of its clusters; all members if absent. */
  clusters?: string[];
  /** Name servers for resolvers: addresses, with a port if it is not 53. */
  nameservers?: string[];
  policy?: FederationPolicy;
  ttlSeconds?: number;
  source?: {
    /** Code of the EDNS option that names the asking cluster. */
    optionCode?: number;
    ranges?: string[];
    /** Names of Secrets. */
    tsigKeys?: { name: string }[];
    certificateNames?: string[];
  };
  /** Nothing is published if absent. */
  public?: FederationPublicDns;
}

export interface FederationPublicDns {
  domain: string;
  ttlSeconds?: number;
  levels?: ('Zone' | 'Region')[];
  provider: {
    type: 'RFC2136' | 'Webhook' | 'DNSEndpoint';
    /** Given with type RFC2136. */
    rfc2136?: { server: string; zone?: string; tsigSecret: { name: string } };
    /** Given with type Webhook; the bundle is base64 of PEM. */
    webhook?: { url: string; caBundle?: string };
  };
}

export interface FederationStatus {
  services?: number;
  publicRecords?: number;
  authority?: {
    /** Base64 of PEM: by it resolvers know the authority that posts the stub zone. */
    caBundle?: string;
    /** RFC 3339: the leading authority writes it again and again while it runs. */
    renewTime?: string;
  };
  stubZones?: { cluster: string; state: 'Pending' | 'Posted' | 'Failed'; endpoint?: string; message?: string }[];
  observedGeneration?: number;
  conditions?: Condition[];
}

/** How often the leading authority renews: each renewal is an event for every member, together at most ten a second. */
export function authorityRenewMs(memberCount: number): number {
  return Math.max(5_000, memberCount * 100);
}

/** Whether nothing but the status may have changed. */
export function isSameSpec(one: Federation | undefined, other: Federation | undefined): boolean {
  return one !== undefined && other !== undefined && isSameJson(one.spec ?? {}, other.spec ?? {});
}
