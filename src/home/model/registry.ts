// Which kinds are served at this moment. Built-in kinds stay; those of CustomResourceDefinitions come and go, and
// open watches on a removed one end.

import { apiVersionOf } from '../../kube/objects/object.ts';
import { type Kind, type KindVersion, keyPrefixOf } from './kind.ts';

/** One version of a kind with everything the request path wants precomputed. */
export interface Served {
  readonly kind: Kind;
  readonly version: KindVersion;
  readonly apiVersion: string;
  readonly keyPrefix: string;
  /** As messages name it: `services`, `deployments.apps`. */
  readonly resource: string;
  readonly verbs: ReadonlySet<string>;
  /** The beginning of an answer; the revision and the stored bytes follow. */
  readonly opening: string;
  readonly openingUnstored: string;
  /** Of an item in a list. As in Kubernetes, items of custom kinds alone name their kind. */
  readonly openingInList: string;
  /** Objects of earlier revisions are brought into the form of the schema when they are read; 0 if there are none. */
  readonly renewsBefore: number;
  /** Tells encodings of one event apart that were made by different versions or schemas. */
  readonly encodingName: string;
  /** Set while the definition is being deleted: nothing new may be created. */
  isTerminating: boolean;
  /** Called when this version is no longer served in this form. Returns how to stop listening. */
  onRetired(listener: () => void): () => void;
}

export interface Registry {
  find(group: string, version: string, plural: string): Served | undefined;
  /** Any served version of the kind, for those who know it by kind: owner references. */
  findKind(group: string, kind: string): Served | undefined;
  /** Any served version, for those who know it by key. */
  findPlural(group: string, plural: string): Served | undefined;
  kinds(): readonly Kind[];
  kindsOf(source: string): readonly Kind[];
  kindsExcept(source: string): readonly Kind[];
  /** Replaces what a source serves; watches on what was there before are ended. */
  set(source: string, kinds: readonly Kind[]): void;
  remove(source: string): void;
  setTerminating(source: string): void;
  /** Grows with every change, for those who keep something made of all kinds. */
  generation(): number;
}

export const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const;

interface RetirableServed extends Served {
  retire(): void;
}

const builtinSource = '';

export function createRegistry(builtin: readonly Kind[]): Registry {
  const sources = new Map<string, { kinds: readonly Kind[]; served: RetirableServed[] }>();
  let byVersion = new Map<string, Served>();
  let byKind = new Map<string, Served>();
  let byPlural = new Map<string, Served>();
  let kinds: readonly Kind[] = [];
  let generation = 0;

  const rebuild = () => {
    generation++;
    byVersion = new Map();
    byKind = new Map();
    byPlural = new Map();
    kinds = [...sources.values()].flatMap((source) => source.kinds);
    for (const served of [...sources.values()].flatMap((source) => source.served)) {
      const { group, plural, kind } = served.kind;
      byVersion.set(`${group}/${served.version.name}/${plural}`, served);
      if (!byKind.has(`${group}/${kind}`)) byKind.set(`${group}/${kind}`, served);
      if (!byPlural.has(`${group}/${plural}`)) byPlural.set(`${group}/${plural}`, served);
    }
  };
  const replace = (source: string, next: readonly Kind[] | undefined) => {
    const before = sources.get(source)?.served ?? [];
    if (next === undefined) sources.delete(source);
    else sources.set(source, { kinds: next, served: next.flatMap(serveKind) });
    rebuild();
    for (const served of before) served.retire();
  };
  replace(builtinSource, builtin);

  return {
    find: (group, version, plural) => byVersion.get(`${group}/${version}/${plural}`),
    findKind: (group, kind) => byKind.get(`${group}/${kind}`),
    findPlural: (group, plural) => byPlural.get(`${group}/${plural}`),
    kinds: () => kinds,
    kindsOf: (source) => sources.get(source)?.kinds ?? [],
    kindsExcept: (excepted) => [...sources].flatMap(([source, { kinds }]) => (source === excepted ? [] : kinds)),
    set: (source, next) => replace(source, next),
    remove: (source) => sources.has(source) && replace(source, undefined),
    setTerminating: (source) => {
      for (const served of sources.get(source)?.served ?? []) served.isTerminating = true;
    },
    generation: () => generation,
  };
}

/** For a kind that has no place of its own, such as a subresource. */
export function serveStorage(kind: Kind): Served {
  return serveKind(kind)[0]!;
}

function serveKind(kind: Kind): RetirableServed[] {
  const verbs = new Set(kind.behaviour.verbs ?? allVerbs);
  return kind.versions.filter((version) => version.isServed).map((version) => serveVersion(kind, version, verbs));
}

function serveVersion(kind: Kind, version: KindVersion, verbs: ReadonlySet<string>): RetirableServed {
  const apiVersion = apiVersionOf({ group: kind.group, version: version.name });
  const openingUnstored = `{"apiVersion":"${apiVersion}","kind":"${kind.kind}","metadata":{`;
  const listeners = new Set<() => void>();
  return {
    kind,
    version,
    apiVersion,
    keyPrefix: keyPrefixOf(kind.storedAs ?? kind),
    resource: kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`,
    verbs,
    opening: `${openingUnstored}"resourceVersion":"`,
    openingUnstored,
    openingInList: `${version.protobufMessage === undefined ? openingUnstored : '{"metadata":{'}"resourceVersion":"`,
    renewsBefore: kind.schemaRevision ?? 0,
    encodingName: `${apiVersion}@${kind.schemaRevision ?? 0}`,
    isTerminating: false,
    onRetired: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    retire: () => {
      for (const listener of [...listeners]) listener();
    },
  };
}
