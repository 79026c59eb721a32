// One service of a peer as it lies in our home: what is remembered of the object, how the object is written, and whether
// somebody else has changed it since. Pure.

import { isSameJson } from '../../base/json.ts';
import {
  contentHashAnnotation,
  firstSeenAnnotation,
  type PeerService,
  type PeerServiceSpec,
  type PeerServiceStatus,
  peerLabel,
  peerServiceName,
  specHash,
  specHashAnnotation,
} from '../kinds/peer-service.ts';

/** What is on disk of one service. */
export interface StoredService {
  readonly id: string;
  /** Of the content as it came; empty if it is not what its owner sent. */
  readonly hash: Uint8Array;
  /** When this cluster first heard of it. */
  readonly firstSeenMs: number;
  readonly name: string;
  readonly fqdn: string;
  /** Nothing good is known of it: it exists to say why it was refused. */
  readonly isQuarantined: boolean;
  /** Empty if it is not there any more, and is about to be put back. */
  readonly resourceVersion: string;
  /** The spec in JSON, to put it back after somebody else changed or removed it. */
  readonly specText: string;
  readonly status: PeerServiceStatus;
}

export const noHash = new Uint8Array(0);

export function storedFrom(object: PeerService, { isAsWritten }: { readonly isAsWritten: boolean }): StoredService {
  const { annotations = {}, resourceVersion = '' } = object.metadata;
  const isOurs = isAsWritten || annotations[specHashAnnotation] === specHash(object.spec);
  return {
    id: object.spec.id,
    hash: isOurs ? Buffer.from(annotations[contentHashAnnotation] ?? '', 'base64') : noHash,
    firstSeenMs: Number(annotations[firstSeenAnnotation] ?? 0),
    name: object.spec.name ?? '',
    fqdn: object.spec.fqdn ?? '',
    isQuarantined: object.spec.fqdn === undefined,
    resourceVersion,
    specText: JSON.stringify(object.spec),
    status: object.status ?? {},
  };
}

export interface ObjectOptions {
  readonly namespace: string;
  readonly spec: PeerServiceSpec;
  readonly hash: Uint8Array;
  readonly firstSeenMs: number;
  /** Empty for an object that is not there. */
  readonly resourceVersion: string;
}

export function objectOf({ namespace, spec, hash, firstSeenMs, resourceVersion }: ObjectOptions): PeerService {
  return {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'PeerService',
    metadata: {
      name: peerServiceName(spec.peer, spec.id),
      namespace,
      ...(resourceVersion === '' ? {} : { resourceVersion }),
      labels: { [peerLabel]: spec.peer, 'app.kubernetes.io/managed-by': 'portolan' },
      annotations: {
        [contentHashAnnotation]: Buffer.from(hash).toString('base64'),
        [specHashAnnotation]: specHash(spec),
        [firstSeenAnnotation]: String(firstSeenMs),
      },
    },
    spec,
  };
}

/** Whether the object is what we wrote, but for its status. */
export function isAsStored({ metadata, spec }: PeerService, stored: StoredService): boolean {
  const { annotations = {}, labels = {} } = metadata;
  const isMarked =
    labels[peerLabel] === spec.peer &&
    annotations[contentHashAnnotation] === Buffer.from(stored.hash).toString('base64') &&
    annotations[firstSeenAnnotation] === String(stored.firstSeenMs);
  return isMarked && isSameJson(spec, JSON.parse(stored.specText));
}

/** All that we say of it. Its addresses are others' writing, who give them anew. */
export function statusToRestore({ ips: _ips, ...status }: PeerServiceStatus): PeerServiceStatus {
  return status;
}

/** Versions of one home grow; of versions that are no numbers any other one may be newer. */
export function isNewer(version: string, than: string): boolean {
  const [one, other] = [Number(version), Number(than)];
  return Number.isNaN(one) || Number.isNaN(other) ? version !== than : one > other;
}
