// The file in which a server's names outlive it: all that its threads read, as it lies in memory, with word of whose names
// these are and a checksum over everything. Pure: copy-keeper.ts writes and reads it.
//
//   magic (16 bytes), version u32, length of the header u32, header (JSON), sections, SHA-256 of all before it
//
// Numbers are as the machine has them: a machine that reads them the other way round finds another version.

import { createHash, type Hash } from 'node:crypto';
import { type CatalogMemory, type CatalogSnapshot, stateWord } from '../names/name-table.ts';
import type { Zone } from '../names/zones.ts';

/** Another number whenever the bytes mean something else: packed-map.ts, answers.ts, places.ts, or this file. */
const copyVersion = 4;

const magic = Buffer.from('portolan names\n\n');
const prefixBytes = magic.length + 8;
const digestBytes = 32;
/** One piece takes well under a millisecond. */
const pieceBytes = 256 << 10;

export interface CopyFacts {
  /** The owner of these names: `cluster east`. */
  readonly owner: string;
  readonly zones: readonly CopiedZone[];
  /** Wall time at which they were last known to be right. */
  readonly asOfMs: number;
}

export interface CopiedZone {
  readonly id: number;
  readonly name: string;
  readonly source: Zone['source'];
  /** Whether it had been read: of a zone that was not, the copy says nothing. */
  readonly isRead: boolean;
}

const sectionNames = ['slots', 'bytes', 'placeSlots', 'placeBytes', 'placeTable'] as const;
type Sections<T> = Record<(typeof sectionNames)[number], T>;

interface Header extends CopyFacts {
  readonly serial: number;
  /** In bytes. */
  readonly sections: Sections<number>;
}

/**
 * The file in pieces. Entries are read where they lie, so a snapshot is quickly made and takes little memory; its index goes
 * as soon as it has been written.
 */
export function* copyPieces(snapshot: CatalogSnapshot, facts: CopyFacts): Generator<Uint8Array> {
  const sections = sectionsOf(snapshot);
  const lengths = Object.fromEntries(sectionNames.map((name) => [name, sections[name].length]));
  const header: Header = { ...facts, serial: snapshot.serial, sections: lengths as Sections<number> };
  const digest = createHash('sha256');
  yield* piecesOf(startOf(header), digest);
  for (const name of sectionNames) {
    yield* piecesOf(sections[name], digest);
    // Freed at once, because garbage collection would come late.
    if (name === 'slots') snapshot.names.slots.buffer.transfer(0);
  }
  yield digest.digest();
}

function sectionsOf({ names, places }: CatalogSnapshot): Sections<Uint8Array> {
  return {
    slots: bytesOf(names.slots),
    bytes: names.bytes,
    placeSlots: bytesOf(places.index.slots),
    placeBytes: places.index.bytes,
    placeTable: bytesOf(places.table),
  };
}

function* piecesOf(part: Uint8Array, digest: Hash): Generator<Uint8Array> {
  for (let at = 0; at < part.length; at += pieceBytes) {
    const piece = part.subarray(at, at + pieceBytes);
    digest.update(piece);
    yield piece;
  }
}

export type ReadCopy =
  | { readonly kind: 'copy'; readonly facts: CopyFacts; memoryFor(zones: readonly number[]): Memory }
  /** Why it cannot be used. */
  | { readonly kind: 'unusable'; readonly why: string };

type Memory = NonNullable<CatalogMemory['old']>;

export function readCopy(file: Uint8Array): ReadCopy {
  const unusable = (why: string): ReadCopy => ({ kind: 'unusable', why });
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.length);
  if (bytes.length < prefixBytes + digestBytes || Buffer.compare(bytes.subarray(0, magic.length), magic) !== 0)
    return unusable('it is no copy of names');
  const [version, headerLength] = new Uint32Array(Uint8Array.from(bytes.subarray(magic.length, prefixBytes)).buffer);
  if (version !== copyVersion) return unusable(`its format is ${version}, and ${copyVersion} is read here`);
  const content = bytes.subarray(0, -digestBytes);
  const digest = createHash('sha256').update(content).digest();
  if (Buffer.compare(digest, bytes.subarray(-digestBytes)) !== 0) return unusable('it is damaged or cut off');
  const header = JSON.parse(content.toString('utf8', prefixBytes, prefixBytes + headerLength!)) as Header;
  const sections = content.subarray(prefixBytes + headerLength!);
  return { kind: 'copy', facts: header, memoryFor: (zones) => memoryOf(header, sections, zones) };
}

/** Only these zones are answered from it. */
function memoryOf(header: Header, content: Uint8Array, zones: readonly number[]): Memory {
  let at = 0;
  const [slots, bytes, placeSlots, placeBytes, table] = sectionNames.map((name) => {
    const shared = new SharedArrayBuffer(header.sections[name]);
    new Uint8Array(shared).set(content.subarray(at, at + shared.byteLength));
    at += shared.byteLength;
    return shared;
  }) as [SharedArrayBuffer, SharedArrayBuffer, SharedArrayBuffer, SharedArrayBuffer, SharedArrayBuffer];
  const state = new Int32Array(new SharedArrayBuffer(4 * Object.keys(stateWord).length));
  state[stateWord.serial] = header.serial;
  for (const zone of zones) state[stateWord.staleZones]! |= 1 << zone;
  const index = { slots: placeSlots, bytes: placeBytes };
  return { names: { slots, bytes }, places: { index, table }, state: state.buffer as unknown as SharedArrayBuffer };
}

function startOf(header: Header): Uint8Array {
  const text = Buffer.from(JSON.stringify(header));
  return Buffer.concat([magic, bytesOf(Uint32Array.of(copyVersion, text.length)), text]);
}

function bytesOf(array: Int32Array | Uint16Array | Uint32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}
