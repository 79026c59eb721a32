// Reads pages of long lists without making objects of all that is in them: who lists a hundred thousand wants a few
// fields of each. The shared parser is here; slice-list.ts and import-list.ts know the fields.

import { JsonScanError, JsonScanner } from '../base/json-scanner.ts';
import type { List } from '../kube/client/client.ts';
import { parseWithoutNulls, withLists } from '../kube/client/foreign.ts';
import type { KubernetesObject, ResourceType } from '../kube/objects/object.ts';
import type { Protocol } from '../kube/objects/service.ts';

/** Names of fields as bytes, for `isKey`. */
export function keysOf<Name extends string>(names: readonly Name[]): Record<Name, Uint8Array> {
  return Object.fromEntries(names.map((name) => [name, Buffer.from(name)])) as unknown as Record<Name, Uint8Array>;
}

const key = keysOf(['metadata', 'items', 'name', 'resourceVersion', 'continue', 'port', 'protocol']);

/** A reader for one list after the other. */
export function createListReader<T extends KubernetesObject>(
  type: ResourceType,
  readItem: (scanner: JsonScanner) => T,
): (page: Uint8Array) => List<T> {
  const texts: string[] = [];
  return (page) => {
    try {
      return readPage(type, new JsonScanner(page, texts), page, readItem);
    } catch (error) {
      if (!(error instanceof JsonScanError)) throw error;
      return parseWithoutNulls(Buffer.from(page).toString('utf8')) as List<T>;
    }
  };
}

function readPage<T extends KubernetesObject>(
  type: ResourceType,
  scanner: JsonScanner,
  page: Uint8Array,
  readItem: (scanner: JsonScanner) => T,
): List<T> {
  let metadata: List<T>['metadata'] = { resourceVersion: '' };
  const items: T[] = [];
  const newest = new Newest<T>(type, page);
  if (!scanner.enterObject()) throw new JsonScanError('a list is not an object');
  while (scanner.nextKey()) {
    if (scanner.isKey(key.metadata)) metadata = readListMetadata(scanner);
    else if (!scanner.isKey(key.items)) scanner.skip();
    else if (scanner.enterArray()) {
      while (scanner.nextItem()) {
        const start = scanner.at;
        const item = readItem(scanner);
        items.push(item);
        newest.see(item, start, scanner.at);
      }
    }
  }
  scanner.end();
  return { metadata, items, newest: newest.whole() };
}

/** The newest object is kept whole: a later check that this is still the same home needs it. */
class Newest<T extends KubernetesObject> {
  readonly #type: ResourceType;
  readonly #page: Uint8Array;
  #revision = Number.NEGATIVE_INFINITY;
  #start = 0;
  #end = 0;

  constructor(type: ResourceType, page: Uint8Array) {
    this.#type = type;
    this.#page = page;
  }

  see({ metadata }: T, start: number, end: number): void {
    const revision = Number(metadata.resourceVersion);
    if (!(revision > this.#revision)) return;
    this.#revision = revision;
    this.#start = start;
    this.#end = end;
  }

  /** As it is when it is read alone. */
  whole(): T | undefined {
    if (this.#end === 0) return undefined;
    const text = Buffer.from(this.#page.subarray(this.#start, this.#end)).toString('utf8');
    return withLists(this.#type, parseWithoutNulls(text) as T);
  }
}

function readListMetadata(scanner: JsonScanner): List<never>['metadata'] {
  let resourceVersion = '';
  let next: string | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key.resourceVersion)) resourceVersion = scanner.text() ?? '';
      else if (scanner.isKey(key.continue)) next = scanner.text();
      else scanner.skip();
    }
  }
  return next === undefined ? { resourceVersion } : { resourceVersion, continue: next };
}

export function readArray<T>(scanner: JsonScanner, readItem: (scanner: JsonScanner) => T): T[] {
  if (!scanner.enterArray() || !scanner.nextItem()) return [];
  // Most have one item. An empty array would be given room for many with its first.
  const items = [readItem(scanner)];
  while (scanner.nextItem()) items.push(readItem(scanner));
  return items;
}

export interface ReadPort {
  readonly name: string | undefined;
  readonly protocol: Protocol | undefined;
  readonly port: number | undefined;
}

export function readPort(scanner: JsonScanner): ReadPort {
  let name: string | undefined;
  let protocol: string | undefined;
  let port: number | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key.name)) name = scanner.text();
      else if (scanner.isKey(key.protocol)) protocol = scanner.text();
      else if (scanner.isKey(key.port)) port = scanner.number();
      else scanner.skip();
    }
  }
  return { name, protocol: protocol as Protocol | undefined, port };
}

export function readText(scanner: JsonScanner): string {
  return scanner.text() ?? '';
}
