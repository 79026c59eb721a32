// Reads pages of long lists without making objects of all that is in them: who lists a hundred thousand wants a few
// fields of each. The shared parser is here; slice-list.ts and import-list.ts know the fields.

import { JsonScanError, JsonScanner } from '../base/json-scanner.ts';
import { RememberedTexts } from '../base/text/remembered-texts.ts';
import type { List, Visited } from '../kube/client/client.ts';
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
  const texts = new RememberedTexts();
  return (page) => {
    const scanner = new JsonScanner(page, texts);
    try {
      const { metadata, itemsAt, isReadThrough } = openPage(scanner);
      const each = (visit: (item: T) => void) => {
        const newest = new Newest<T>(type, page);
        const see = (item: T, start: number) => {
          newest.see(item, start, scanner.at);
          visit(item);
        };
        try {
          const count = itemsAt < 0 ? 0 : readItems(scanner, itemsAt, readItem, see);
          if (!isReadThrough) readRest(scanner);
          return { count, newest: newest.whole() };
        } catch (error) {
          return visitParsed(parsedPage<T>(type, page, error), type, visit);
        }
      };
      return { metadata, items: [], each };
    } catch (error) {
      return parsedPage(type, page, error);
    }
  };
}

interface OpenPage {
  readonly metadata: List<never>['metadata'];
  /** -1 if there are none. */
  readonly itemsAt: number;
  readonly isReadThrough: boolean;
}

/** Reads up to the items. Homes put the metadata before them; if not, the rest is looked through for it. */
function openPage(scanner: JsonScanner): OpenPage {
  let metadata: OpenPage['metadata'] | undefined;
  let itemsAt = -1;
  if (!scanner.enterObject()) throw new JsonScanError('a list is not an object');
  while (scanner.nextKey()) {
    if (scanner.isKey(key.metadata)) metadata = readListMetadata(scanner);
    else if (scanner.isKey(key.items)) {
      itemsAt = scanner.at;
      if (metadata !== undefined) return { metadata, itemsAt, isReadThrough: false };
      scanner.skip();
    } else scanner.skip();
  }
  scanner.end();
  return { metadata: metadata ?? { resourceVersion: '' }, itemsAt, isReadThrough: true };
}

function readItems<T>(
  scanner: JsonScanner,
  itemsAt: number,
  readItem: (scanner: JsonScanner) => T,
  see: (item: T, start: number) => void,
): number {
  let count = 0;
  scanner.at = itemsAt;
  if (!scanner.enterArray()) return 0;
  while (scanner.nextItem()) {
    const start = scanner.at;
    see(readItem(scanner), start);
    count += 1;
  }
  return count;
}

function readRest(scanner: JsonScanner): void {
  while (scanner.nextKey()) scanner.skip();
  scanner.end();
}

/** By JSON.parse, where the scanner could not be sure. */
function parsedPage<T extends KubernetesObject>(type: ResourceType, page: Uint8Array, error: unknown): List<T> {
  if (!(error instanceof JsonScanError)) throw error;
  const text = Buffer.from(page).toString('utf8');
  try {
    return parseWithoutNulls(text) as List<T>;
  } catch (cause) {
    throw new Error(`list ${type.plural}: the answer is not JSON: ${text.slice(0, 200)}`, { cause });
  }
}

/** All of them, also those that were visited before the scanner gave up: they are the same. */
function visitParsed<T extends KubernetesObject>(
  { items }: List<T>,
  type: ResourceType,
  visit: (item: T) => void,
): Visited<T> {
  let newest: T | undefined;
  for (const item of items ?? []) {
    visit(withLists(type, item));
    if (!(Number(item.metadata.resourceVersion) <= Number(newest?.metadata.resourceVersion))) newest = item;
  }
  return { count: items?.length ?? 0, newest };
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
