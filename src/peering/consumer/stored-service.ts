// One service of a peer as stored in our home: the remembered fields, the written object, and whether another writer
// has changed it since. Pure.

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
import type { HeldService } from '../session/held-services.ts';

/** One service on disk, in the smallest form: there may be a great many of them. */
export class StoredService implements HeldService {
  readonly id: string;
  /** Hash of the received content; empty if it differs from the owner's. */
  readonly hash: string;
  /** When this cluster first received it. */
  readonly firstSeenMs: number;
  /** Nothing good is known of it: it exists to say why it was refused. */
  readonly isQuarantined: boolean;
  /** Empty if it is not there any more, and is about to be put back. */
  readonly resourceVersion: string;
  /** The spec in JSON, to put it back after others changed or removed it. */
  readonly #specText: string;
  readonly #statusText: string;

  constructor(fields: StoredFields) {
    this.id = fields.id;
    this.hash = fields.hash;
    this.firstSeenMs = fields.firstSeenMs;
    this.isQuarantined = fields.isQuarantined;
    this.resourceVersion = fields.resourceVersion;
    this.#specText = fields.specText;
    this.#statusText = fields.statusText;
  }

  get bytes(): number {
    return this.#specText.length;
  }

  get spec(): PeerServiceSpec {
    return JSON.parse(this.#specText) as PeerServiceSpec;
  }

  get status(): PeerServiceStatus {
    return this.#statusText === '' ? {} : (JSON.parse(this.#statusText) as PeerServiceStatus);
  }

  /** The same with a newer version and status: its spec stays what we wrote last. */
  refreshed({ metadata, status }: Pick<PeerService, 'metadata' | 'status'>): StoredService {
    const { resourceVersion = '' } = metadata;
    const texts = { specText: this.#specText, statusText: statusTextOf(status) };
    return new StoredService({ ...this.#fields(), ...texts, resourceVersion });
  }

  /** Somebody removed it. */
  vanished(): StoredService {
    const gone = { hash: '', resourceVersion: '', specText: this.#specText, statusText: '' };
    return new StoredService({ ...this.#fields(), ...gone });
  }

  #fields() {
    const { id, hash, firstSeenMs, isQuarantined } = this;
    return { id, hash, firstSeenMs, isQuarantined };
  }
}

interface StoredFields
  extends Pick<StoredService, 'id' | 'hash' | 'firstSeenMs' | 'isQuarantined' | 'resourceVersion'> {
  readonly specText: string;
  readonly statusText: string;
}

function statusTextOf(status: PeerServiceStatus = {}): string {
  return Object.keys(status).length === 0 ? '' : JSON.stringify(status);
}

export const noHash = new Uint8Array(0);

export function storedFrom(object: PeerService, { isAsWritten }: { readonly isAsWritten: boolean }): StoredService {
  const { annotations = {}, resourceVersion = '' } = object.metadata;
  const isOurs = isAsWritten || annotations[specHashAnnotation] === specHash(object.spec);
  return new StoredService({
    id: object.spec.id,
    hash: isOurs ? Buffer.from(annotations[contentHashAnnotation] ?? '', 'base64').toString('latin1') : '',
    firstSeenMs: Number(annotations[firstSeenAnnotation] ?? 0),
    isQuarantined: object.spec.fqdn === undefined,
    resourceVersion,
    specText: JSON.stringify(object.spec),
    statusText: statusTextOf(object.status),
  });
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
    annotations[contentHashAnnotation] === Buffer.from(stored.hash, 'latin1').toString('base64') &&
    annotations[firstSeenAnnotation] === String(stored.firstSeenMs);
  return isMarked && isSameJson(spec, stored.spec);
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
