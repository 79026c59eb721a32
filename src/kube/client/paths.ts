// Where an object or a collection lies in a home's URL space.

import type { ResourceType } from '../objects/object.ts';

export type Query = Readonly<Record<string, string | undefined>>;

export interface PathParts {
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
}

/** A collection when there is no name; all namespaces when a namespaced kind is given none. */
export function objectPath(type: ResourceType, parts: PathParts): string {
  const root = groupVersionPath(type);
  const scope = type.isNamespaced && parts.namespace ? `/namespaces/${encodeURIComponent(parts.namespace)}` : '';
  const name = parts.name === undefined ? '' : `/${encodeURIComponent(parts.name)}`;
  const subresource = parts.subresource === undefined ? '' : `/${parts.subresource}`;
  return `${root}${scope}/${type.plural}${name}${subresource}`;
}

export function groupVersionPath(type: { readonly group: string; readonly version: string }): string {
  return type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
}

export function withQuery(path: string, query: Query): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') parts.push(`${name}=${encodeURIComponent(value)}`);
  }
  return parts.length === 0 ? path : `${path}?${parts.join('&')}`;
}
