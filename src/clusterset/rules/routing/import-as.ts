// The name that a service of the clusterset has in this cluster, if a policy gives it another one. Pure.

import type { ServiceKey } from '../names.ts';

/** On a ServiceImport of another name than its service has in the clusterset: `namespace/name` of that service. */
export const importedFromAnnotation = 'portolan.dev/imported-from';

/** Key of the service that an import is of. */
export function sourceOfImport({ metadata }: ImportMetadata): string {
  const from = metadata.annotations?.[importedFromAnnotation];
  return typeof from === 'string' && from.includes('/') ? from : `${metadata.namespace}/${metadata.name}`;
}

interface ImportMetadata {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>> | null;
  };
}

/** In place of a name: the cluster's own name of the service leads to the service of the clusterset. */
export const transparent = 'Transparent';

/** Why it is no name for an import; undefined if it is one. */
export function importAsProblem(importAs: string | null | undefined): string | undefined {
  if (importAs === undefined || importAs === null || importAs === transparent || pattern.test(importAs))
    return undefined;
  const text = JSON.stringify(importAs).slice(0, 80);
  return `importAs: ${text} is neither NAME nor NAMESPACE/NAME nor NAMESPACE/* nor ${transparent}`;
}

const label = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?';
const serviceLabel = '[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?';
const pattern = new RegExp(`^(?:(${label})/)?(${serviceLabel}|(?<=/)\\*)$`);

/** The service's own name if it has no other. */
export function nameHere(importAs: string | null | undefined, service: ServiceKey): ServiceKey {
  const [, namespace, name] = pattern.exec(importAs ?? '') ?? [];
  if (name === undefined) return service;
  return { namespace: namespace ?? service.namespace, name: name === '*' ? service.name : name };
}
