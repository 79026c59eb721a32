// A resource as it is served: encoded once for all proxies, its version the hash of its bytes.

import { createHash } from 'node:crypto';
import { encodeResource } from '../envoy-schema.ts';
import type { Cause, XdsResource, XdsType } from '../resource.ts';
import { type Reference, referencesOf } from './references.ts';

export interface Entry {
  readonly type: XdsType;
  readonly name: string;
  /** Equal versions have equal bytes. */
  readonly version: string;
  /** The resource as `google.protobuf.Any`. */
  readonly any: Uint8Array;
  readonly causes: readonly Cause[];
  /** Undefined if they are not known. */
  readonly references: ReadonlySet<Reference> | undefined;
  readonly isByNameOnly: boolean;
}

const versionDigits = 24;
const nothing = new Uint8Array();

export function makeEntry(resource: XdsResource): Entry {
  const any = encodeResource(resource);
  return {
    type: resource.type,
    name: resource.name,
    version: createHash('sha256').update(any).digest('hex').slice(0, versionDigits),
    any,
    causes: resource.causes,
    references: referencesOf(resource),
    isByNameOnly: resource.isByNameOnly ?? false,
  };
}

/** A version that a proxy holds and this process has never seen. */
export function unknownEntry(type: XdsType, name: string, version: string): Entry {
  return { type, name, version, any: nothing, causes: [], references: undefined, isByNameOnly: false };
}

export function mayRefer(entry: Entry | undefined, reference: Reference): boolean {
  return entry !== undefined && (entry.references === undefined || entry.references.has(reference));
}

/** Versions of a set in one number that does not depend on their order; adding and removing are the same operation. */
export function toggleDigest(digest: bigint, { version }: Entry): bigint {
  return digest ^ (/^[0-9a-f]+$/.test(version) ? BigInt(`0x${version}`) : 0n);
}

export function formatDigest(digest: bigint): string {
  return digest.toString(16).padStart(versionDigits, '0');
}
