// From a request line to what it asks for, in the terms of RBAC. Purely a matter of spelling: whether such a kind is
// served is asked later, after it is known that the caller may ask.

import type { Attributes } from './access.ts';

export type Route = PathRoute | ResourceRoute;

/** Anything that is not a resource: discovery, health, metrics, OpenAPI. */
export interface PathRoute {
  readonly kind: 'path';
  readonly path: string;
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  readonly attributes: Attributes;
}

export interface ResourceRoute {
  readonly kind: 'resource';
  readonly verb: Verb;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** Empty for cluster-scoped resources and for all namespaces. */
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
  /**
   * The path behind the subresource `proxy`, for the part that is asked; `/` at least. Empty without that
   * subresource.
   */
  readonly proxyPath: string;
  readonly query: URLSearchParams;
  readonly attributes: Attributes;
}

type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection' | 'unknown';

const verbsOfMethods: ReadonlyMap<string, Verb> = new Map([
  ['GET', 'get'],
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);
const namespaceSubresources = new Set(['status', 'finalize']);
const noQuery = new URLSearchParams();

/** Undefined for a path that no client in its right mind sends: broken escapes, or a slash hidden in a name. */
export function parseRoute(method: string, target: string): Route | undefined {
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = mark < 0 ? noQuery : new URLSearchParams(target.slice(mark + 1));
  const segments = splitPath(path);
  if (segments === undefined) return undefined;
  const start = segments[0] === 'api' ? 2 : segments[0] === 'apis' ? 3 : Number.POSITIVE_INFINITY;
  if (segments.length <= start) return pathRoute(method, path, segments, query);
  const group = segments[0] === 'api' ? '' : segments[1]!;
  return resourceRoute(method, { group, version: segments[start - 1]!, rest: segments.slice(start), query });
}

function splitPath(path: string): string[] | undefined {
  const segments = path.split('/').filter((segment) => segment !== '');
  if (!path.includes('%')) return segments;
  try {
    const decoded = segments.map(decodeURIComponent);
    return decoded.some((segment) => segment.includes('/')) ? undefined : decoded;
  } catch {
    return undefined;
  }
}

function pathRoute(method: string, path: string, segments: readonly string[], query: URLSearchParams): PathRoute {
  const attributes: Attributes = {
    verb: method.toLowerCase(),
    path,
    group: '',
    version: '',
    resource: '',
    subresource: '',
    namespace: '',
    name: '',
  };
  return { kind: 'path', path, segments, query, attributes };
}

interface ResourcePath {
  readonly group: string;
  readonly version: string;
  /** Everything after the version. */
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

function resourceRoute(method: string, { group, version, rest, query }: ResourcePath): ResourceRoute {
  const isLegacyWatch = rest[0] === 'watch' && rest.length > 1;
  const place = parsePlace(isLegacyWatch ? rest.slice(1) : rest);
  const { plural, name, subresource } = place;
  const fieldName = name === '' ? nameInFieldSelector(query) : '';
  const verb = isLegacyWatch ? 'watch' : verbOf(method, name, query);
  const attributes: Attributes = {
    verb: verb === 'unknown' ? method.toLowerCase() : verb,
    group,
    version,
    resource: plural,
    subresource,
    // A Role inside a namespace may speak of that namespace, as in Kubernetes.
    namespace: plural === 'namespaces' && group === '' ? name : place.namespace,
    name: name === '' && (verb === 'list' || verb === 'watch' || verb === 'deletecollection') ? fieldName : name,
  };
  return { kind: 'resource', verb, group, version, ...place, query, attributes };
}

type ObjectPlace = Pick<ResourceRoute, 'plural' | 'namespace' | 'name' | 'subresource' | 'proxyPath'>;

function parsePlace(rest: readonly string[]): ObjectPlace {
  const isInNamespace = rest[0] === 'namespaces' && rest.length > 2 && !namespaceSubresources.has(rest[2]!);
  const namespace = isInNamespace ? rest[1]! : '';
  const [plural = '', name = '', ...subresource] = isInNamespace ? rest.slice(2) : rest;
  if (subresource[0] === 'proxy') {
    const proxyPath = `/${subresource.slice(1).map(encodeURIComponent).join('/')}`;
    return { plural, namespace, name, subresource: 'proxy', proxyPath };
  }
  return { plural, namespace, name, subresource: subresource.join('/'), proxyPath: '' };
}

function verbOf(method: string, name: string, query: URLSearchParams): Verb {
  const verb = verbsOfMethods.get(method) ?? 'unknown';
  if (name !== '') return verb;
  if (verb === 'get') return isTrue(query.get('watch')) ? 'watch' : 'list';
  return verb === 'delete' ? 'deletecollection' : verb;
}

export function isTrue(value: string | null): boolean {
  return value === 'true' || value === '1' || value === 'True' || value === 'TRUE' || value === 't' || value === 'T';
}

function nameInFieldSelector(query: URLSearchParams): string {
  const match = /(?:^|,)metadata\.name==?([^,=!]+)(?:,|$)/.exec(query.get('fieldSelector') ?? '');
  return match?.[1] ?? '';
}
