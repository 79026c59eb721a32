// Reads a page of a list of ServiceImports, and of each only what names, kernel rules and xDS resources are made of.

import { JsonScanError, type JsonScanner } from '../../base/json-scanner.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { importedFromAnnotation } from '../../clusterset/rules/routing/import-as.ts';
import { routingAnnotation } from '../../clusterset/rules/routing/routing.ts';
import type { List } from '../../kube/client/client.ts';
import type { ObjectMeta } from '../../kube/objects/object.ts';
import { createListReader, keysOf, readArray, readPort, readText } from './list-page.ts';

const key = keysOf([
  ...['metadata', 'name', 'namespace', 'resourceVersion', 'annotations'],
  ...['spec', 'type', 'ips', 'ports', 'trafficDistribution', 'internalTrafficPolicy'],
  ...['sessionAffinity', 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds'],
  ...[routingAnnotation, importedFromAnnotation],
] as const);

export function createImportListReader(): (page: Uint8Array) => List<ServiceImport> {
  return createListReader<ServiceImport>(serviceImportType, readImport);
}

function readImport(scanner: JsonScanner): ServiceImport {
  let metadata: ObjectMeta = { name: '' };
  let spec: ServiceImport['spec'] | undefined;
  if (!scanner.enterObject()) throw new JsonScanError('an item is not an object');
  while (scanner.nextKey()) {
    if (scanner.isKey(key.metadata)) metadata = readMetadata(scanner);
    else if (scanner.isKey(key.spec)) spec = readSpec(scanner);
    else scanner.skip();
  }
  const { group, version, kind } = serviceImportType;
  return { apiVersion: `${group}/${version}`, kind, metadata, spec } as ServiceImport;
}

function readMetadata(scanner: JsonScanner): ObjectMeta {
  let name = '';
  let namespace: string | undefined;
  let resourceVersion: string | undefined;
  let annotations: Record<string, string> | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key.name)) name = readText(scanner);
      else if (scanner.isKey(key.namespace)) namespace = scanner.text();
      else if (scanner.isKey(key.resourceVersion)) resourceVersion = scanner.text();
      else if (scanner.isKey(key.annotations)) annotations = readAnnotations(scanner);
      else scanner.skip();
    }
  }
  return { name, namespace, resourceVersion, ...(annotations && { annotations }) };
}

/** Only those that data planes read. */
function readAnnotations(scanner: JsonScanner): Record<string, string> | undefined {
  let routing: string | undefined;
  let importedFrom: string | undefined;
  if (!scanner.enterObject()) return undefined;
  while (scanner.nextKey()) {
    if (scanner.isKey(key[routingAnnotation])) routing = scanner.text();
    else if (scanner.isKey(key[importedFromAnnotation])) importedFrom = scanner.text();
    else scanner.skip();
  }
  if (routing === undefined && importedFrom === undefined) return undefined;
  return {
    ...(routing === undefined ? {} : { [routingAnnotation]: routing }),
    ...(importedFrom === undefined ? {} : { [importedFromAnnotation]: importedFrom }),
  };
}

function readSpec(scanner: JsonScanner): ServiceImport['spec'] {
  let type: string | undefined;
  let ips: string[] = [];
  let ports: ReturnType<typeof readPort>[] = [];
  let trafficDistribution: string | undefined;
  let internalTrafficPolicy: string | undefined;
  let sessionAffinity: string | undefined;
  let timeoutSeconds: number | undefined;
  if (scanner.enterObject()) {
    while (scanner.nextKey()) {
      if (scanner.isKey(key.type)) type = scanner.text();
      else if (scanner.isKey(key.ips)) ips = readArray(scanner, readText);
      else if (scanner.isKey(key.ports)) ports = readArray(scanner, readPort);
      else if (scanner.isKey(key.trafficDistribution)) trafficDistribution = scanner.text();
      else if (scanner.isKey(key.internalTrafficPolicy)) internalTrafficPolicy = scanner.text();
      else if (scanner.isKey(key.sessionAffinity)) sessionAffinity = scanner.text();
      else if (scanner.isKey(key.sessionAffinityConfig)) timeoutSeconds = readTimeout(scanner);
      else scanner.skip();
    }
  }
  const sessionAffinityConfig = timeoutSeconds === undefined ? undefined : { clientIP: { timeoutSeconds } };
  const traffic = { trafficDistribution, internalTrafficPolicy, sessionAffinity, sessionAffinityConfig };
  return { type, ips, ports, ...traffic } as ServiceImport['spec'];
}

/** `{ clientIP: { timeoutSeconds } }` */
function readTimeout(scanner: JsonScanner): number | undefined {
  let seconds: number | undefined;
  if (!scanner.enterObject()) return undefined;
  while (scanner.nextKey()) {
    if (!scanner.isKey(key.clientIP) || !scanner.enterObject()) scanner.skip();
    else
      while (scanner.nextKey()) {
        if (scanner.isKey(key.timeoutSeconds)) seconds = scanner.number();
        else scanner.skip();
      }
  }
  return seconds;
}
