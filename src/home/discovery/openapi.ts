// OpenAPI v3 of what is served now: an index, and one document for each group and version, made when first asked for
// and kept until the kinds of that group change. An address in the index carries a hash, so clients may keep what
// they got for as long as the address stays the same.

import { createHash } from 'node:crypto';
import { apiVersionOf } from '../../kube/objects/object.ts';
import type { Kind, KindVersion } from '../kinds/kind.ts';
import { messageOfKind } from '../kinds/messages/messages.ts';
import { addPaths, type Paths } from './openapi-paths.ts';
import { addKind, addMessage, type Components } from './openapi-schemas.ts';

export interface OpenApiSource {
  kinds(): readonly Kind[];
  /** Grows with every change of the kinds. */
  generation(): number;
}

export interface OpenApi {
  /** The answer to /openapi/v3. */
  index(): string;
  /** The answer to /openapi/v3/<path>: `api/v1`, `apis/apps/v1`. Undefined if nothing is served there. */
  document(path: string): OpenApiDocument | undefined;
}

export interface OpenApiDocument {
  readonly text: string;
  /** Hash of the text; `?hash=` of the address in the index. */
  readonly hash: string;
}

interface ServedKind {
  readonly kind: Kind;
  readonly version: KindVersion;
}

export function createOpenApi(source: OpenApiSource): OpenApi {
  let generation = -1;
  let groups = new Map<string, Cached>();
  const refresh = () => {
    if (generation === source.generation()) return;
    generation = source.generation();
    groups = regroup(source.kinds(), groups);
  };
  const documentAt = (path: string): OpenApiDocument | undefined => {
    refresh();
    const group = groups.get(path);
    return group === undefined ? undefined : (group.document ??= openapiDocument(group.served));
  };
  return {
    index: () => {
      refresh();
      return openapiIndex([...groups.keys()].map((path) => ({ path, hash: documentAt(path)!.hash })));
    },
    document: documentAt,
  };
}

interface Cached {
  readonly served: readonly ServedKind[];
  document: OpenApiDocument | undefined;
}

/** A document is kept if the very same kinds are served at its path. */
function regroup(kinds: readonly Kind[], before: ReadonlyMap<string, Cached>): Map<string, Cached> {
  const groups = new Map<string, ServedKind[]>();
  for (const kind of kinds) {
    for (const version of kind.versions.filter((each) => each.isServed)) {
      const path = `${kind.group === '' ? 'api' : 'apis'}/${apiVersionOf({ group: kind.group, version: version.name })}`;
      const served = groups.get(path) ?? [];
      served.push({ kind, version });
      groups.set(path, served);
    }
  }
  const paths = [...groups.keys()].sort();
  return new Map(paths.map((path) => [path, reuse(before.get(path), groups.get(path)!)]));
}

function reuse(before: Cached | undefined, served: readonly ServedKind[]): Cached {
  const isSame =
    served.length === before?.served.length && served.every((each, at) => each.kind === before.served[at]?.kind);
  return isSame ? before! : { served, document: undefined };
}

function openapiIndex(documents: readonly { readonly path: string; readonly hash: string }[]): string {
  const paths = documents.map(({ path, hash }) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }]);
  return JSON.stringify({ paths: Object.fromEntries(paths) });
}

function openapiDocument(served: readonly ServedKind[]): OpenApiDocument {
  const schemas: Components = {};
  const paths: Paths = {};
  addMessage(schemas, 'meta.v1.Status');
  addMessage(schemas, 'meta.v1.DeleteOptions');
  for (const { kind, version } of served) {
    addKind(schemas, kind, version);
    addPaths(paths, kind, version);
    for (const subresource of Object.values(kind.behaviour.subresources ?? {}))
      addSubresourceKind(schemas, subresource);
  }
  const text = JSON.stringify({
    openapi: '3.0.0',
    info: { title: 'Portolan', version: 'unversioned' },
    paths: sorted(paths),
    components: { schemas: sorted(schemas) },
  });
  return { text, hash: createHash('sha256').update(text).digest('hex').slice(0, 32).toUpperCase() };
}

function addSubresourceKind(schemas: Components, names: { group: string; version: string; kind: string }): void {
  const message = messageOfKind(apiVersionOf(names), names.kind);
  if (message !== undefined) addMessage(schemas, message);
}

function sorted<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  const keys = Object.keys(record).sort();
  return Object.fromEntries(keys.map((key) => [key, record[key]!]));
}
