// The pending work for one service of a peer in our home: its wanted form, its wanted status, the waiting callers,
// and events from the home. Pure.

import { isSameJson } from '../../base/json.ts';
import type { PeerService, PeerServiceSpec, PeerServiceStatus } from '../kinds/peer-service.ts';
import { hashBytes } from '../session/held-services.ts';
import type { StoredService } from './stored-service.ts';

export type PutResult = { readonly kind: 'stored' } | { readonly kind: 'refused'; readonly reason: string };

export type Wanted =
  | {
      readonly kind: 'present';
      readonly spec: PeerServiceSpec;
      readonly hash: Uint8Array;
      /** Written whatever we believe is stored. */
      readonly isRepair?: boolean;
    }
  | { readonly kind: 'absent' };

export interface Lane {
  wanted: Wanted | undefined;
  /** A merge patch of the status that was not sent yet. */
  status: PeerServiceStatusPatch | undefined;
  /** The one that is on its way. */
  sending: PeerServiceStatusPatch | undefined;
  /** Told when what was wanted at their time, or something newer, is on disk. */
  waiters: ((result: PutResult) => void)[];
  /** How often in a row the home said that we may not write it. */
  forbidden: number;
  /** The home must be asked what there is. */
  isDoubtful: boolean;
  /** The newest event from the home while it was being worked on. */
  told: Told | undefined;
}

/** An event about one object: its state, or the version in which it was deleted. */
export type Told = { readonly object: PeerService } | { readonly goneIn: string };

/** Null takes a field away. */
export type PeerServiceStatusPatch = { readonly [Field in keyof PeerServiceStatus]: PeerServiceStatus[Field] | null };

export const stored: PutResult = { kind: 'stored' };

export function newLane(): Lane {
  const nothing = { wanted: undefined, status: undefined, sending: undefined, told: undefined };
  return { ...nothing, waiters: [], forbidden: 0, isDoubtful: false };
}

export function repairOf({ spec, hash }: StoredService): Wanted {
  return { kind: 'present', spec, hash: hashBytes(hash), isRepair: true };
}

export function isApplied(patch: PeerServiceStatusPatch, status: PeerServiceStatus): boolean {
  return Object.entries(patch).every(([field, value]) => {
    const present = status[field as keyof PeerServiceStatus];
    return value === null ? present === undefined : isSameJson(present, value);
  });
}
