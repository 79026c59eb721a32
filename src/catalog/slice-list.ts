// Reads a page of a list of EndpointSlices, and of each slice only what names are made of. Nothing else is listed in such
// numbers: three slices a service, most of whose bytes say who made them and when.

import { JsonScanError, JsonScanner } from '../base/json-scanner.ts';
import type { List } from '../kube/client/client.ts';
import {
  type Endpoint,
  type EndpointPort,
  type EndpointSlice,
  importedServiceNameLabel,
  serviceNameLabel,
  sourceClusterLabel,
} from '../kube/objects/endpoint-slice.ts';
import type { ObjectMeta } from '../kube/objects/object.ts';
import type { Protocol } from '../kube/objects/service.ts';

const keyNames = [
  'metadata',
  'items',
  'name',
  'namespace',
  'resourceVersion',
  'continue',
  'labels',
  'addressType',
  'ports',
  'port',
  'protocol',
  'endpoints',
  'addresses',
  'hostname',
  'zone',
  'conditions',
  'ready',
  importedServiceNameLabel,
  sourceClusterLabel,
  serviceNameLabel,
] as const;
type Keys = Record<(typeof keyNames)[number], Uint8Array>;
const key = Object.fromEntries(keyNames.map((name) => [name, Buffer.from(name)])) as unknown as Keys;

/** A reader for one list after the other. */
export function createSliceListReader(): (page: Uint8Array) => List<EndpointSlice> {
  const texts: string[] = [];
  return (page) => {
    try {
      return readPage(new JsonScanner(page, texts), page);
    } catch (error) {
      if (!(error instanceof JsonScanError)) throw error;
      return JSON.parse(Buffer.from(page).toString('utf8')) as List<EndpointSlice>;
    }
  };
}

function readPage(scanner: JsonScanner, page: Uint8Array): List<EndpointSlice> {
  let metadata: List<EndpointSlice>['metadata'] = { resourceVersion: '' };
  const items: EndpointSlice[] = [];
  const newest = new Newest(page);
  if (!scanner.enterObject()) throw new JsonScanError('a list is no object');
  while (scanner.nextKey()) {
    if (scanner.isKey(key.metadata)) metadata = readListMetadata(scanner);
    else if (!scanner.isKey(key.items)) scanner.skip();
    else if (scanner.enterArray()) {
      while (scanner.nextItem()) {
        const start = scanner.at;
        const item = readSlice(scanner);
        items.push(item);
        newest.see(item, start, scanner.at);
      }
    }
  }
  scanner.end();
  return { metadata, items, newest: newest.whole() };
}

/** Who is asked later whether this is the same home wants to have seen the newest object whole. */
class Newest {
  readonly #page: Uint8Array;
  #revision = Number.NEGATIVE_INFINITY;
  #start = 0;
  #end = 0;

  constructor(page: Uint8Array) {
    this.#page = page;
  }

  see({ metadata }: EndpointSlice, start: number, end: number): void {
    const revision = Number(metadata.resourceVersion);
    if (!(revision > this.#revision)) return;
    this.#revision = revision;
    this.#start = start;
    this.#end = end;
  }

  whole(): EndpointSlice | undefined {
    if (this.#end === 0) return undefined;
    return JSON.parse(Buffer.from(this.#page.subarray(this.#start, this.#end)).toString('utf8')) as EndpointSlice;
  }
}

function readListMetadata(scanner: JsonScanner): List<EndpointSlice>['metadata'] {
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

function readSlice(scanner: JsonScanner): EndpointSlice {
  let metadata: ObjectMeta = { name: '' };
  let addressType: string | undefined;
  let ports: EndpointPort[] = [];
  let endpoints: Endpoint[] = [];
  if (!scanner.enterObject()) throw new JsonScanError('an item is no object');
  while (scanner.nextKey()) {
    if (scanner.isKey(key.metadata)) metadata = readMetadata(scanner);
    else if (scanner.isKey(key.addressType)) addressType = scanner.text();
    else if (scanner.isKey(key.ports)) ports = readArray(scanner, readPort);
    else if (scanner.isKey(key.endpoints)) endpoints = readArray(scanner, readEndpoint);
    else scanner.skip();
  }
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata,
    addressType: addressType as EndpointSlice['addressType'],
    ports,
    endpoints,
  };
}

function readMetadata(scanner: JsonScanner): ObjectMeta {
  let name = '';
  let namespace: string | undefined;
  let resourceVersion: string | undefined;
  let labels: Record<string, string> | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key.name)) name = scanner.text() ?? '';
      else if (scanner.isKey(key.namespace)) namespace = scanner.text();
      else if (scanner.isKey(key.resourceVersion)) resourceVersion = scanner.text();
      else if (scanner.isKey(key.labels)) labels = readLabels(scanner);
      else scanner.skip();
    }
  }
  return { name, namespace, resourceVersion, labels };
}

/** Only those that say whose slice it is. */
function readLabels(scanner: JsonScanner): Record<string, string> {
  let imported: string | undefined;
  let cluster: string | undefined;
  let service: string | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key[importedServiceNameLabel])) imported = scanner.text();
      else if (scanner.isKey(key[sourceClusterLabel])) cluster = scanner.text();
      else if (scanner.isKey(key[serviceNameLabel])) service = scanner.text();
      else scanner.skip();
    }
  }
  const labels = { [importedServiceNameLabel]: imported, [sourceClusterLabel]: cluster, [serviceNameLabel]: service };
  return labels as Record<string, string>;
}

function readArray<T>(scanner: JsonScanner, readItem: (scanner: JsonScanner) => T): T[] {
  if (!scanner.enterArray() || !scanner.nextItem()) return [];
  // Most have one item. An empty array would be given room for many with its first.
  const items = [readItem(scanner)];
  while (scanner.nextItem()) items.push(readItem(scanner));
  return items;
}

function readPort(scanner: JsonScanner): EndpointPort {
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

function readEndpoint(scanner: JsonScanner): Endpoint {
  let addresses: string[] = [];
  let hostname: string | undefined;
  let zone: string | undefined;
  let ready: boolean | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key.addresses)) addresses = readArray(scanner, readText);
      else if (scanner.isKey(key.hostname)) hostname = scanner.text();
      else if (scanner.isKey(key.zone)) zone = scanner.text();
      else if (scanner.isKey(key.conditions)) ready = readReady(scanner);
      else scanner.skip();
    }
  }
  return { addresses, hostname, zone, conditions: { ready } };
}

function readReady(scanner: JsonScanner): boolean | undefined {
  let ready: boolean | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key.ready)) ready = scanner.boolean();
      else scanner.skip();
    }
  }
  return ready;
}

function readText(scanner: JsonScanner): string {
  return scanner.text() ?? '';
}
