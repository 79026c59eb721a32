// MeshExternalService: something outside every mesh, how connections to it are recognised, and where they go. Lives at the
// broker in the namespace of the set (all clusters), or at a home in the system namespace (that cluster).

import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

export const meshExternalServiceType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'meshexternalservices',
  kind: 'MeshExternalService',
  isNamespaced: true,
};

export const matchTypes = ['InternalVIP', 'Domain', 'CIDR', 'IP'] as const;
export type MatchType = (typeof matchTypes)[number];

export const protocols = ['tls', 'tcp', 'grpc', 'http', 'http2'] as const;
export type Protocol = (typeof protocols)[number];

export const destinationTypes = ['Regular', 'Passthrough', 'Extension'] as const;
export type DestinationType = (typeof destinationTypes)[number];

export const tlsVersions = ['TLS_AUTO', 'TLSv1_0', 'TLSv1_1', 'TLSv1_2', 'TLSv1_3'] as const;
export type TlsVersion = (typeof tlsVersions)[number];

export interface MeshExternalService extends KubernetesObject {
  spec: MeshExternalServiceSpec;
  status?: MeshExternalServiceStatus;
}

interface MeshExternalServiceSpec {
  match: ExternalMatch[];
  destination?: ExternalDestination;
}

export interface ExternalMatch {
  type: MatchType;
  /** A name, a range or an address. An InternalVIP without one takes the generated hostnames. */
  value?: string;
  port: number;
  protocol?: Protocol;
}

interface ExternalDestination {
  type?: DestinationType;
  extension?: { type: string; config?: unknown };
  endpoints?: ExternalEndpoint[];
  tls?: ExternalTls;
}

export interface ExternalEndpoint {
  /** A hostname, an IP address or `unix://` and an absolute path. */
  address: string;
  /** The port of the match when absent. */
  port?: number;
}

export interface ExternalTls {
  enabled?: boolean;
  version?: { min?: TlsVersion; max?: TlsVersion };
  allowRenegotiation?: boolean;
  verification?: { skip?: boolean; subjectAltNames?: string[] };
  caCert?: DataSource & {
    /** In place of the others: the CAs that the proxy's own system trusts. */
    system?: boolean;
  };
  clientCert?: DataSource;
  clientKey?: DataSource;
  /** Workloads that use the client key: proxies of other nodes do not get it. All get it if absent. */
  usedBy?: WorkloadSelector[];
}

export interface WorkloadSelector {
  namespace: string;
  /** All of the namespace if absent. */
  serviceAccount?: string;
}

/** Exactly one of them. */
export interface DataSource {
  /** Base64. */
  inline?: string;
  inlineString?: string;
  /** `name` or `name/key` of a Secret in portolan-external of the home where the proxy runs. */
  secret?: string;
}

interface MeshExternalServiceStatus {
  vips?: ExternalVip[];
  addresses?: ExternalAddress[];
  overlaps?: string[];
  conditions?: Condition[];
}

export interface ExternalVip {
  ip: string;
  /** `Portolan`; `Kuma` is read as the same. */
  type: string;
  hostname: string;
}

export interface ExternalAddress {
  hostname: string;
  status: 'Available' | 'NotAvailable';
  origin: { kind: string; name: string };
  reason?: string;
}

/** The seed's labels: a clusterset, and one of its clusters. */
export const meshLabel = 'kuma.io/mesh';
/** Where the Envoy of a node listens: connections to these never leave it. */
export const proxyPorts: readonly number[] = [15_001, 15_002, 15_003];

export const zoneLabel = 'kuma.io/zone';
/** On copies at a home: the object lies at the broker. */
export const originLabel = 'portolan.dev/origin';
/** On a copy: when the original was made, because the older of two wins. */
export const createdAnnotation = 'portolan.dev/created';

/** On a resource at the broker: `true` lets members copy the Secrets it names from there. */
export const shareSecretsAnnotation = 'portolan.dev/share-secrets';

export type Origin = 'home' | 'broker';

export function originOf(object: KubernetesObject): Origin {
  return object.metadata.labels?.[originLabel] === 'broker' ? 'broker' : 'home';
}

const copySuffix = '.broker';

/** The name of the copy that a member keeps at home. A dot is in no name that people give, so both can live side by side. */
export function copyName(name: string): string {
  return `${name}${copySuffix}`;
}

/** The name that people gave it. */
export function ownName(object: KubernetesObject): string {
  const { name } = object.metadata;
  return originOf(object) === 'broker' && name.endsWith(copySuffix) ? name.slice(0, -copySuffix.length) : name;
}

/** Its creation time, in any cluster; 0 if unknown. */
export function createdMs(object: KubernetesObject): number {
  const { annotations, creationTimestamp } = object.metadata;
  // Only of a copy: at home everybody is as old as the API server says.
  const copied = originOf(object) === 'broker' ? annotations?.[createdAnnotation] : undefined;
  return Date.parse(copied ?? creationTimestamp ?? '') || 0;
}
