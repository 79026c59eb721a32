// Reads a page of a list of EndpointSlices, and of each slice only what names are made of. Nothing else is listed in such
// numbers: three slices a service, most of whose bytes say who made them and when.

import { JsonScanError, type JsonScanner } from '../../base/json-scanner.ts';
import { virtualAddressesLabel } from '../../clusterset/rules/networks/virtual-endpoints.ts';
import type { List } from '../../kube/client/client.ts';
import {
  type Endpoint,
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  serviceNameLabel,
  sourceClusterLabel,
} from '../../kube/objects/endpoint-slice.ts';
import type { ObjectMeta } from '../../kube/objects/object.ts';
import { createListReader, keysOf, readArray, readPort, readText } from './list-page.ts';

const key = keysOf([
  'metadata',
  'name',
  'namespace',
  'resourceVersion',
  'labels',
  'addressType',
  'ports',
  'endpoints',
  'addresses',
  'hostname',
  'zone',
  'conditions',
  'ready',
  'serving',
  importedServiceNameLabel,
  sourceClusterLabel,
  serviceNameLabel,
  virtualAddressesLabel,
] as const);

export function createSliceListReader(): (page: Uint8Array) => List<EndpointSlice> {
  return createListReader<EndpointSlice>(endpointSliceType, readSlice);
}

function readSlice(scanner: JsonScanner): EndpointSlice {
  let metadata: ObjectMeta = { name: '' };
  let addressType: string | undefined;
  let ports: ReturnType<typeof readPort>[] = [];
  let endpoints: Endpoint[] = [];
  if (!scanner.enterObject()) throw new JsonScanError('an item is not an object');
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

/** Only those that say whose slice it is, and whether its addresses are its endpoints' own. */
function readLabels(scanner: JsonScanner): Record<string, string> {
  let imported: string | undefined;
  let cluster: string | undefined;
  let service: string | undefined;
  let virtual: string | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key[importedServiceNameLabel])) imported = scanner.text();
      else if (scanner.isKey(key[sourceClusterLabel])) cluster = scanner.text();
      else if (scanner.isKey(key[serviceNameLabel])) service = scanner.text();
      else if (scanner.isKey(key[virtualAddressesLabel])) virtual = scanner.text();
      else scanner.skip();
    }
  }
  const labels = {
    ...{ [importedServiceNameLabel]: imported, [sourceClusterLabel]: cluster, [serviceNameLabel]: service },
    ...(virtual === undefined ? {} : { [virtualAddressesLabel]: virtual }),
  };
  return labels as Record<string, string>;
}

function readEndpoint(scanner: JsonScanner): Endpoint {
  let addresses: string[] = [];
  let hostname: string | undefined;
  let zone: string | undefined;
  let conditions: NonNullable<Endpoint['conditions']> = {};
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key.addresses)) addresses = readArray(scanner, readText);
      else if (scanner.isKey(key.hostname)) hostname = scanner.text();
      else if (scanner.isKey(key.zone)) zone = scanner.text();
      else if (scanner.isKey(key.conditions)) conditions = readConditions(scanner);
      else scanner.skip();
    }
  }
  return { addresses, hostname, zone, conditions };
}

function readConditions(scanner: JsonScanner): NonNullable<Endpoint['conditions']> {
  let ready: boolean | undefined;
  let serving: boolean | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key.ready)) ready = scanner.boolean();
      else if (scanner.isKey(key.serving)) serving = scanner.boolean();
      else scanner.skip();
    }
  }
  return { ready, serving };
}
