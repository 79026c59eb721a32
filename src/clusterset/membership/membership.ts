// A cluster's membership as it lies in the cluster's own home: a Secret with what it is in which clusterset and how it
// reaches the broker, and the two properties of the About API. Pure.

import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import {
  type ClusterProperty,
  clusterIdProperty,
  clusterPropertyType,
  clusterSetProperty,
} from '../kinds/cluster-property.ts';

export const membershipSecretName = 'portolan-broker';

/** On the Secret, while the cluster is leaving: agents stop when they see it. */
export const leavingAnnotation = 'portolan.dev/leaving';

/** In a namespace of its own: the keys with which this cluster seals and opens exports, and those it knows of others. */
export const sealingSecretName = 'portolan-sealing';
/** Beside it: how far the sealed records of each member were seen. */
export const sealedMemoryName = 'portolan-sealed-memory';

/** Where agents keep what they last judged of other members' leases, in the system namespace. */
export const verdictsName = 'portolan-lease-verdicts';
/** In it, beside the ids of clusters: since when the broker does not answer, RFC 3339. */
export const brokerNoteKey = '_broker-away-since';

export interface MembershipRecord {
  readonly clusterset: string;
  readonly clusterId: string;
  /** This member's own namespace at the broker. */
  readonly namespace: string;
  readonly accountNamespace: string;
  readonly accountName: string;
  readonly server: string;
  /** PEM; empty where the system's own authorities are trusted. */
  readonly certificateAuthority: string;
  readonly token: string;
  /** RFC 3339. */
  readonly tokenIssuedAt: string;
  readonly tokenExpiresAt: string;
}

const keys: Readonly<Record<keyof MembershipRecord, string>> = {
  clusterset: 'clusterset',
  clusterId: 'cluster-id',
  namespace: 'namespace',
  accountNamespace: 'account-namespace',
  accountName: 'account-name',
  server: 'server',
  certificateAuthority: 'ca.crt',
  token: 'token',
  tokenIssuedAt: 'token-issued-at',
  tokenExpiresAt: 'token-expires-at',
};

export function membershipSecret(record: MembershipRecord): Manifest<Secret> {
  return manifest(
    secretType,
    { name: membershipSecretName, namespace: systemNamespace },
    { type: 'portolan.dev/broker', data: membershipData(record) },
  ) as Manifest<Secret>;
}

export function membershipData(record: MembershipRecord): Record<string, string> {
  const entries = Object.entries(keys) as [keyof MembershipRecord, string][];
  return Object.fromEntries(entries.map(([field, key]) => [key, Buffer.from(record[field]).toString('base64')]));
}

/** Throws if the Secret is not one that joining wrote. */
export function readMembership(secret: Secret): MembershipRecord {
  const entries = Object.entries(keys) as [keyof MembershipRecord, string][];
  const read = entries.map(([field, key]) => {
    const value = secret.data?.[key];
    if (value === undefined) {
      throw new Error(`secret ${systemNamespace}/${secret.metadata.name}: ${key} is missing; leave and join again`);
    }
    return [field, Buffer.from(value, 'base64').toString('utf8')];
  });
  return Object.fromEntries(read) as unknown as MembershipRecord;
}

export function isLeaving(secret: Secret): boolean {
  return secret.metadata.annotations?.[leavingAnnotation] !== undefined;
}

export function clusterProperties(member: { clusterset: string; clusterId: string }): Manifest<ClusterProperty>[] {
  const property = (name: string, value: string) =>
    manifest(clusterPropertyType, { name }, { spec: { value } }) as Manifest<ClusterProperty>;
  return [property(clusterIdProperty, member.clusterId), property(clusterSetProperty, member.clusterset)];
}
