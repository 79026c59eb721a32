// Reads pages of long lists without making objects of all that is in them: who lists a hundred thousand wants a few
// fields of each. The shared parser is here; slice-list.ts and import-list.ts know the fields.

import { JsonScanError, JsonScanner } from '../../base/json-scanner.ts';
import { RememberedTexts } from '../../base/text/remembered-texts.ts';
import type { List } from '../../kube/client/client.ts';
import { parseWithoutNulls, withLists } from '../../kube/client/foreign.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { Protocol } from '../../kube/objects/service.ts';

/** Names of fields as bytes, for `isKey`. */
export function keysOf<Name extends string>(names: readonly Name[]): Record<Name, Uint8Array> {
  return Object.fromEntries(names.map((name) => [name, Buffer.from(name)])) as unknown as Record<Name, Uint8Array>;
}

const key = keysOf(['metadata', 'items', 'name', 'resourceVersion', 'continue', 'port', 'protocol', 'appProtocol']);

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
        try {
          if (itemsAt >= 0) readItems(scanner, itemsAt, readItem, visit);
          if (!isReadThrough) readRest(scanner);
        } catch (error) {
          // All of them, also those that were visited before the scanner gave up: they are the same.
          for (const item of parsedPage<T>(type, page, error).items ?? []) visit(withLists(type, item));
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
  visit: (item: T) => void,
): void {
  scanner.at = itemsAt;
  if (!scanner.enterArray()) return;
  while (scanner.nextItem()) visit(readItem(scanner));
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
  readonly appProtocol: string | undefined;
}

export function readPort(scanner: JsonScanner): ReadPort {
  let name: string | undefined;
  let protocol: string | undefined;
  let port: number | undefined;
  let appProtocol: string | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key.name)) name = scanner.text();
      else if (scanner.isKey(key.protocol)) protocol = scanner.text();
      else if (scanner.isKey(key.port)) port = scanner.number();
      else if (scanner.isKey(key.appProtocol)) appProtocol = scanner.text();
      else scanner.skip();
    }
  }
  return { name, protocol: protocol as Protocol | undefined, port, appProtocol };
}

export function readText(scanner: JsonScanner): string {
  return scanner.text() ?? '';
}
