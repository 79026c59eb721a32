// A resource as it is served: encoded once for all proxies, its version the hash of its bytes.

import { createHash } from 'node:crypto';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { inOwnMemory } from '../../base/bytes/own-memory.ts';
import { encodeResource } from '../envoy-schema.ts';
import type { Cause, Variant, XdsResource, XdsType } from '../resource.ts';
import { type Reference, referencesOf } from './references.ts';

export interface Entry {
  readonly type: XdsType;
  readonly name: string;
  /** Equal versions have equal bytes. */
  readonly version: string;
  /** The resource as `google.protobuf.Any`: a part of `packed`. */
  readonly any: Uint8Array;
  /** As a field of a response, ready to be copied: with name and version (delta), or alone (state of the world). */
  readonly packed: Readonly<Record<Variant, Uint8Array>>;
  /** The version as a number. */
  readonly digest: bigint;
  readonly causes: readonly Cause[];
  /** Undefined if they are not known. */
  readonly references: ReadonlySet<Reference> | undefined;
  readonly isByNameOnly: boolean;
}

const versionDigits = 24;
const nothing = new Uint8Array();

export function makeEntry(resource: XdsResource): Entry {
  const bytes = encodeResource(resource);
  const version = createHash('sha256').update(bytes).digest('hex').slice(0, versionDigits);
  return {
    type: resource.type,
    name: resource.name,
    version,
    ...pack(resource.name, version, bytes),
    digest: BigInt(`0x${version}`),
    causes: resource.causes,
    references: referencesOf(resource),
    isByNameOnly: resource.isByNameOnly ?? false,
  };
}

/** A version that a proxy holds and this process has never seen. */
export function unknownEntry(type: XdsType, name: string, version: string): Entry {
  const unknown = { causes: [], references: undefined, isByNameOnly: false, digest: 0n };
  return { type, name, version, any: nothing, packed: { delta: nothing, sotw: nothing }, ...unknown };
}

// Resource in a delta response and `resource` in it are both field 2, as are resources in the other variant: the bytes of
// one contain the bytes of the other.
function pack(name: string, version: string, any: Uint8Array): Pick<Entry, 'any' | 'packed'> {
  const head = new BinaryWriter().tag(1, WireType.LengthDelimited).string(version).finish();
  const middle = new BinaryWriter().tag(2, WireType.LengthDelimited).bytes(any).finish();
  const tail = new BinaryWriter().tag(3, WireType.LengthDelimited).string(name).finish();
  const length = head.length + middle.length + tail.length;
  const front = new BinaryWriter().tag(2, WireType.LengthDelimited).uint32(length).finish();
  const delta = inOwnMemory(Buffer.concat([front, head, middle, tail]));
  const sotw = delta.subarray(front.length + head.length, delta.length - tail.length);
  return { any: sotw.subarray(sotw.length - any.length), packed: { delta, sotw } };
}

export function mayRefer(entry: Entry | undefined, reference: Reference): boolean {
  return entry !== undefined && (entry.references === undefined || entry.references.has(reference));
}

/** Versions of a set in one number that does not depend on their order; adding and removing are the same operation. */
export function toggleDigest(digest: bigint, entry: Entry): bigint {
  return digest ^ entry.digest;
}

export function formatDigest(digest: bigint): string {
  return digest.toString(16).padStart(versionDigits, '0');
}
