// OpenAPI v3 of what is served now: an index, and one document for each group and version, made when first asked for
// and kept until the kinds of that group change. An address in the index carries a hash, so clients may keep what
// they got for as long as the address stays the same.

import { createHash } from 'node:crypto';
import { inSteps, type Pieces } from '../../base/turns.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import { scaleKind } from '../kinds/scale.ts';
import { messageOfKind } from '../messages/messages.ts';
import type { Kind, KindVersion } from '../model/kind.ts';
import { addPaths, type Paths } from './openapi-paths.ts';
import { addKind, addMessage, type Components } from './openapi-schemas.ts';
import { addDocument, type Parts } from './openapi-v2.ts';

export interface OpenApiSource {
  kinds(): readonly Kind[];
  /** Grows with every change of the kinds. */
  generation(): number;
}

export interface OpenApi {
  /** The answer to /openapi/v3. */
  index(): Promise<string>;
  /** The answer to /openapi/v2, with everything. */
  version2(): Promise<OpenApiDocument>;
  /** The answer to /openapi/v3/<path>: `api/v1`, `apis/apps/v1`. Undefined if nothing is served there. */
  document(path: string): Promise<OpenApiDocument | undefined>;
}

interface OpenApiDocument {
  /** The text in pieces: definitions may bring megabytes each. */
  readonly chunks: readonly Uint8Array[];
  /** Hash of the text; `?hash=` of the address in the index. */
  readonly hash: string;
}

interface ServedKind {
  readonly kind: Kind;
  readonly version: KindVersion;
}

/** `step` is awaited before each piece of a document. */
export function createOpenApi(source: OpenApiSource, step: () => Promise<void>): OpenApi {
  let generation = -1;
  let groups = new Map<string, Cached>();
  let second: Promise<OpenApiDocument> | undefined;
  const refresh = () => {
    if (generation === source.generation()) return;
    generation = source.generation();
    groups = regroup(source.kinds(), groups);
    second = undefined;
  };
  // Shared by all that ask while it is being made.
  const documentOf = (group: Cached) => (group.document ??= inSteps(openapiDocument(group.served), step));
  return {
    index: async () => {
      refresh();
      const hashes: [path: string, hash: string][] = [];
      for (const [path, group] of groups) hashes.push([path, (await documentOf(group)).hash]);
      return openapiIndex(hashes);
    },
    version2: () => {
      refresh();
      const documents = [...groups.values()].map(documentOf);
      return (second ??= Promise.all(documents).then((all) => inSteps(documentOfVersion2(all), step)));
    },
    document: async (path) => {
      refresh();
      const group = groups.get(path);
      return group && documentOf(group);
    },
  };
}

interface Cached {
  readonly served: readonly ServedKind[];
  document: Promise<OpenApiDocument> | undefined;
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

function openapiIndex(hashes: readonly (readonly [path: string, hash: string])[]): string {
  const paths = hashes.map(([path, hash]) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }]);
  return JSON.stringify({ paths: Object.fromEntries(paths) });
}

function* openapiDocument(served: readonly ServedKind[]): Pieces<OpenApiDocument> {
  const schemas: Components = {};
  const paths: Paths = {};
  addMessage(schemas, 'meta.v1.Status');
  addMessage(schemas, 'meta.v1.DeleteOptions');
  for (const { kind, version } of served) {
    yield;
    addKind(schemas, kind, version);
    addPaths(paths, kind, version);
    if (version.scale !== undefined) addKind(schemas, scaleKind, scaleKind.versions[0]!);
    for (const subresource of Object.values(kind.behaviour.subresources ?? {}))
      addSubresourceKind(schemas, subresource);
  }
  const { add, done } = collectChunks();
  add(`{"openapi":"3.0.0","info":${info},"paths":{`);
  yield* addMembers(paths, add);
  add('},"components":{"schemas":{');
  yield* addMembers(schemas, add);
  add('}}}');
  return done();
}

function* documentOfVersion2(documents: readonly OpenApiDocument[]): Pieces<OpenApiDocument> {
  const parts: Parts = { paths: {}, definitions: {} };
  for (const { chunks } of documents) {
    yield;
    yield* addDocument(parts, JSON.parse(Buffer.concat(chunks).toString()));
  }
  const { add, done } = collectChunks();
  add(`{"swagger":"2.0","info":${info},"paths":{`);
  yield* addMembers(parts.paths, add);
  add('},"definitions":{');
  yield* addMembers(parts.definitions, add);
  add('}}');
  return done();
}

const info = JSON.stringify({ title: 'Portolan', version: 'unversioned' });

function collectChunks(): { add(text: string): void; done(): OpenApiDocument } {
  const chunks: Uint8Array[] = [];
  const hash = createHash('sha256');
  return {
    add: (text) => {
      const chunk = Buffer.from(text);
      hash.update(chunk);
      chunks.push(chunk);
    },
    done: () => ({ chunks, hash: hash.digest('hex').slice(0, 32).toUpperCase() }),
  };
}

/** Characters of one chunk; a single schema may be longer. */
const chunkLength = 64 * 1024;

function* addMembers(record: Readonly<Record<string, unknown>>, add: (text: string) => void): Pieces<void> {
  let text = '';
  for (const [index, key] of Object.keys(record).sort().entries()) {
    text += `${index === 0 ? '' : ','}${JSON.stringify(key)}:${JSON.stringify(record[key])}`;
    if (text.length < chunkLength) continue;
    add(text);
    text = '';
    yield;
  }
  add(text);
}

function addSubresourceKind(schemas: Components, names: { group: string; version: string; kind: string }): void {
  const message = messageOfKind(apiVersionOf(names), names.kind);
  if (message !== undefined) addMessage(schemas, message);
}
