// SealedRecord: what a cluster exports for some readers only, encrypted, at the broker in that cluster's namespace. One kind
// with two forms: a key record holds the key of an audience, sealed for each reader; the others hold one ServiceShard or
// EndpointShard each, encrypted with that key. Names tell nothing.

import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

export const sealedRecordType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'sealedrecords',
  kind: 'SealedRecord',
  isNamespaced: true,
};

export interface SealedRecord extends KubernetesObject {
  spec: SealedRecordSpec;
}

interface SealedRecordSpec {
  /** Id of the audience, which is the name of its key record. */
  audience: string;
  /** Second since 1970 in which the key was made; always later than that of the key before. */
  epoch: number;
  /** Grows with each writing of this record. */
  counter?: number;
  /** Base64: nonce, tag and ciphertext. */
  data?: string;
  /** Set in a key record. */
  readers?: SealedReader[] | null;
}

export interface SealedReader {
  cluster: string;
  /** Fingerprint of the public key that the key is sealed for. */
  fingerprint: string;
  /** Base64. */
  key: string;
}
