// How an object lies in the store, and how an answer is made of it without parsing. The value is the object's JSON
// without apiVersion, kind and resourceVersion, metadata first, so that an answer is a short opening and the rest of
// the stored bytes. Every version of a kind is stored in the same form.

import type { AnyObject } from '../../kube/objects/object.ts';
import { applySchemaDefaults } from '../schema/defaults.ts';
import { pruneUnknownFields } from '../schema/prune.ts';
import type { Schema } from '../schema/schema.ts';
import type { Entry } from '../store/store.ts';
import { registryRoot } from './kind.ts';
import type { Served } from './registry.ts';

/** The parts of an answer. Revision 0 is an object that was not stored: a dry run. */
export interface Stored {
  readonly value: Uint8Array;
  readonly revision: number;
}

/** Every stored value begins with this and goes on with the name or another field of metadata. */
const storedOpening = '{"metadata":{';
export function objectKey(keyPrefix: string, namespace: string, name: string): string {
  return namespace === '' ? keyPrefix + name : `${keyPrefix}${namespace}/${name}`;
}

export interface ParsedKey {
  readonly group: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
}

/** The parts of a key below /registry/, or undefined for a key of another making. */
export function parseKey(key: string): ParsedKey | undefined {
  if (!key.startsWith(registryRoot)) return undefined;
  const parts = key.slice(registryRoot.length).split('/');
  const group = parts[0] === 'core' ? '' : parts[0]!;
  if (parts.length === 3) return { group, plural: parts[1]!, namespace: '', name: parts[2]! };
  if (parts.length === 4) return { group, plural: parts[1]!, namespace: parts[2]!, name: parts[3]! };
  return undefined;
}

/** `namespace/name` or `name`: what a key has below the prefix of its kind. */
export function parsePlace(keyPrefix: string, key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/', keyPrefix.length);
  if (slash < 0) return { namespace: '', name: key.slice(keyPrefix.length) };
  return { namespace: key.slice(keyPrefix.length, slash), name: key.slice(slash + 1) };
}

const encoder = new TextEncoder();

/** Bytes in a buffer of their own size, which the store can keep as they are. */
export function encodeStored({ kind }: Served, object: AnyObject): Uint8Array {
  return encodeValue(kind.storedAs === undefined ? object : kind.storedAs.toStored(object));
}

function encodeValue(object: AnyObject): Uint8Array {
  const { apiVersion: _version, kind: _kind, metadata, ...rest } = object;
  const { resourceVersion: _revision, ...storedMetadata } = metadata;
  return encoder.encode(JSON.stringify({ metadata: storedMetadata, ...rest }));
}

/** A fresh object that the caller may change. */
export function parseStored(served: Served, stored: Stored): AnyObject {
  const object = JSON.parse(textOf(stored.value)) as AnyObject;
  object.apiVersion = served.apiVersion;
  object.kind = served.kind.kind;
  if (isOutdated(served, stored)) renew(served.version.schema, object);
  if (stored.revision > 0) object.metadata.resourceVersion = String(stored.revision);
  return served.kind.storedAs === undefined ? object : served.kind.storedAs.fromStored(object);
}

/** The schema of the kind may have changed since the object was stored. */
function isOutdated(served: Served, { revision }: Pick<Stored, 'revision'>): boolean {
  return revision < served.renewsBefore;
}

function renew(schema: Schema, object: AnyObject): void {
  pruneUnknownFields(schema, object);
  applySchemaDefaults(schema, object);
}

function isShownAsStored(served: Served, stored: Pick<Stored, 'revision'>): boolean {
  return served.kind.storedAs === undefined && !isOutdated(served, stored);
}

/** The bytes of an object as today's schema describes it, in the words of the kind. */
export function renewedValue(served: Served, stored: Stored): Uint8Array {
  return isShownAsStored(served, stored) ? stored.value : encodeValue(parseStored(served, stored));
}

export function textOf(bytes: Uint8Array): string {
  return bufferOf(bytes).toString('utf8');
}

/** The same bytes, seen as a Buffer. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The text before the stored bytes in an answer. ASCII only. */
function openingOf(served: Served, revision: number): string {
  return revision === 0 ? served.openingUnstored : `${served.opening}${revision}",`;
}

export function encodeAnswer(served: Served, stored: Stored): Buffer {
  return splice(openingOf(served, stored.revision), renewedValue(served, stored), '');
}

/** One line of a watch stream. */
export function encodeEvent(type: string, served: Served, stored: Stored): Buffer {
  return splice(
    `{"type":"${type}","object":${openingOf(served, stored.revision)}`,
    renewedValue(served, stored),
    '}\n',
  );
}

function splice(opening: string, value: Uint8Array, closing: string): Buffer {
  const bodyLength = value.length - storedOpening.length;
  const bytes = Buffer.allocUnsafe(opening.length + bodyLength + closing.length);
  bytes.write(opening, 0, 'latin1');
  bytes.set(value.subarray(storedOpening.length), opening.length);
  if (closing !== '') bytes.write(closing, opening.length + bodyLength, 'latin1');
  return bytes;
}

/** Encoding a chunk of this many entries or bytes does not delay others. */
const chunkLength = 1000;
const chunkBytes = 1024 * 1024;

/** A list's answer: an opening, the entries' bytes with their own openings between commas, a closing. A long one is made
 *  chunk by chunk, as it is read. */
export function encodeList(
  served: Served,
  entries: readonly Entry[],
  opening: string,
): Buffer | AsyncIterable<Uint8Array> {
  if (chunkEnd(entries, 0, { length: chunkLength, bytes: chunkBytes }) === entries.length)
    return encodeItems(served, entries, opening, ']}');
  return encodeChunks(served, entries, opening);
}

/** The index behind the last entry of a chunk, which has at least one. */
export function chunkEnd(
  entries: readonly Pick<Entry, 'latin1'>[],
  from: number,
  most: { readonly length: number; readonly bytes: number },
): number {
  let bytes = 0;
  let end = from;
  while (end < entries.length && end - from < most.length && (end === from || bytes < most.bytes)) {
    bytes += entries[end++]!.latin1.length;
  }
  return end;
}

async function* encodeChunks(served: Served, entries: readonly Entry[], opening: string): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < entries.length; ) {
    const end = chunkEnd(entries, at, { length: chunkLength, bytes: chunkBytes });
    const chunk = entries.slice(at, end);
    yield encodeItems(served, chunk, at === 0 ? opening : ',', end === entries.length ? ']}' : '');
    at = end;
  }
}

type Encoded = Pick<Entry, 'revision' | 'latin1'>;

function renewedEntry(served: Served, entry: Entry): Encoded {
  if (isShownAsStored(served, entry)) return entry;
  return { revision: entry.revision, latin1: bufferOf(renewedValue(served, entry)).toString('latin1') };
}

function encodeItems(served: Served, stored: readonly Entry[], opening: string, closing: string): Buffer {
  const isAsStored = served.renewsBefore === 0 && served.kind.storedAs === undefined;
  const entries: readonly Encoded[] = isAsStored ? stored : stored.map((entry) => renewedEntry(served, entry));
  const openings = entries.map((entry) => `${served.openingInList}${entry.revision}",`);
  let length = Buffer.byteLength(opening) + Math.max(0, entries.length - 1) + closing.length;
  for (let index = 0; index < entries.length; index++) {
    length += openings[index]!.length + entries[index]!.latin1.length - storedOpening.length;
  }
  const bytes = Buffer.allocUnsafe(length);
  let at = bytes.write(opening, 0);
  for (let index = 0; index < entries.length; index++) {
    if (index > 0) bytes[at++] = 0x2c;
    const ofEntry = openings[index]!;
    // The opening is written over the stored one, which is shorter: no part of the value is cut out and copied first.
    const valueAt = at + ofEntry.length - storedOpening.length;
    const end = valueAt + bytes.write(entries[index]!.latin1, valueAt, 'latin1');
    bytes.write(ofEntry, at, 'latin1');
    at = end;
  }
  bytes.write(closing, at, 'latin1');
  return bytes;
}
