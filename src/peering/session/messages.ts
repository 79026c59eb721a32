// The messages between owner and consumer, for every version of the protocol.

import type { SharedService } from '../kinds/shared-service.ts';

/** A service as its owner offers it, encoded once for all consumers. */
export interface Offer {
  readonly service: SharedService;
  /** The resource's bytes on the wire. */
  readonly bytes: Uint8Array;
  /** SHA-256 of `bytes`. */
  readonly hash: Uint8Array;
}

/** The end of a snapshot, for consumers that asked for it. */
export interface SnapshotEnd {
  /** Changes when the owner's revisions start anew. */
  readonly epoch: string;
  readonly revision: number;
  readonly count: number;
  /** Exclusive or of the hashes of all resources in the snapshot. */
  readonly digest: Uint8Array;
}

export type OwnerMessage =
  | { readonly kind: 'create' | 'update' | 'delete'; readonly nonce: string; readonly offer: Offer }
  | { readonly kind: 'snapshotEnd'; readonly nonce: string; readonly end: SnapshotEnd };

/** An owner's message as a consumer reads it; a resource it cannot read says why. */
export type ReceivedMessage =
  | {
      readonly kind: 'upsert';
      readonly nonce: string;
      readonly service: SharedService;
      readonly hash: Uint8Array;
      /** The length of the resource. */
      readonly bytes: number;
    }
  | { readonly kind: 'delete'; readonly nonce: string; readonly id: string }
  | { readonly kind: 'snapshotEnd'; readonly nonce: string; readonly end: SnapshotEnd }
  /** `id` is empty when not even that could be read. */
  | { readonly kind: 'unreadable'; readonly nonce: string; readonly id: string; readonly reason: string };

export type ConsumerMessage =
  /** `context` is for the owner to send along with what it sends; only in the later draft. */
  | { readonly kind: 'subscribe'; readonly resourceUrl: string; readonly context?: string }
  /** `resourceUrl` may be empty: only the presence of a status tells an answer from a subscription. */
  | {
      readonly kind: 'ack';
      readonly nonce: string;
      readonly resourceUrl: string;
      /** A note for the owner of an accepted service: sent as the message of status 0. */
      readonly note?: string;
    }
  | {
      readonly kind: 'nack';
      readonly nonce: string;
      readonly resourceUrl: string;
      readonly code: number;
      readonly reason: string;
    };

export function exclusiveOr(into: Uint8Array, hash: Uint8Array): void {
  for (let index = 0; index < into.length; index += 1) into[index] = (into[index] as number) ^ (hash[index] as number);
}

export function isSameHash(one: Uint8Array, other: Uint8Array): boolean {
  return one === other || Buffer.compare(one, other) === 0;
}
