// Which groups, versions and resources there are, in the plain form and in the aggregated one. Made of the registry as
// it is at this moment.

import { createHash } from 'node:crypto';
import { apiVersionOf } from '../../kube/objects/object.ts';
import { compareVersions } from '../definitions/version-order.ts';
import type { Kind, KindVersion } from '../model/kind.ts';
import { allVerbs, type Registry } from '../model/registry.ts';

interface ServedResource {
  readonly kind: Kind;
  readonly version: KindVersion;
}

interface Group {
  readonly name: string;
  /** By preference. */
  readonly versions: ReadonlyMap<string, readonly ServedResource[]>;
}

/** The core group first, the others by name. */
function groupsOf(registry: Registry): Group[] {
  const names = [...new Set(registry.kinds().map((kind) => kind.group))].sort();
  return names.map((name) => groupOf(registry, name)).filter((group) => group.versions.size > 0);
}

function groupOf(registry: Registry, name: string): Group {
  const resources = registry
    .kinds()
    .filter((kind) => kind.group === name)
    .flatMap((kind) => kind.versions.filter((version) => version.isServed).map((version) => ({ kind, version })));
  const versions = [...new Set(resources.map(({ version }) => version.name))].sort(compareVersions);
  const byPlural = (a: ServedResource, b: ServedResource) => (a.kind.plural < b.kind.plural ? -1 : 1);
  return {
    name,
    versions: new Map(
      versions.map((each) => [each, resources.filter(({ version }) => version.name === each).sort(byPlural)]),
    ),
  };
}

/** `/api` */
export function coreVersions(): unknown {
  return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
}

/** `/apis` */
export function groupList(registry: Registry): unknown {
  const groups = groupsOf(registry).filter((group) => group.name !== '');
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(plainGroup) };
}

/** `/apis/G`; undefined if there is no such group. */
export function groupAnswer(registry: Registry, name: string): unknown {
  const group = groupOf(registry, name);
  return group.versions.size === 0 || name === ''
    ? undefined
    : { kind: 'APIGroup', apiVersion: 'v1', ...plainGroup(group) };
}

function plainGroup(group: Group) {
  const versions = [...group.versions.keys()].map((version) => ({
    groupVersion: apiVersionOf({ group: group.name, version }),
    version,
  }));
  return { name: group.name, versions, preferredVersion: versions[0] };
}

/** `/api/v1`, `/apis/G/V`; undefined if there is no such version. */
export function resourceList(registry: Registry, group: string, version: string): unknown {
  const resources = groupOf(registry, group).versions.get(version);
  if (resources === undefined) return undefined;
  const groupVersion = apiVersionOf({ group, version });
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: resources.flatMap(plainResources) };
}

function plainResources({ kind, version }: ServedResource): unknown[] {
  const main = {
    name: kind.plural,
    singularName: kind.singular,
    namespaced: kind.isNamespaced,
    kind: kind.kind,
    verbs: verbsOf(kind),
    ...(kind.behaviour.review === undefined ? { storageVersionHash: storageVersionHash(kind) } : {}),
    ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories.length === 0 ? {} : { categories: kind.categories }),
  };
  const below = subresourcesOf(kind, version).map(({ name, type, verbs }) => ({
    name: `${kind.plural}/${name}`,
    singularName: '',
    namespaced: kind.isNamespaced,
    ...(type.group === kind.group && type.version === version.name ? {} : { group: type.group, version: type.version }),
    kind: type.kind,
    verbs,
  }));
  return [main, ...below];
}

/** Changes when objects are stored in another version. */
function storageVersionHash({ group, storageVersion, kind }: Kind): string {
  const digest = createHash('sha256').update(`${group}/${storageVersion}/${kind}`).digest();
  return digest.subarray(0, 8).toString('base64');
}

function verbsOf(kind: Kind): readonly string[] {
  return [...(kind.behaviour.verbs ?? allVerbs)].sort();
}

interface BelowResource {
  readonly name: string;
  readonly type: { readonly group: string; readonly version: string; readonly kind: string };
  readonly verbs: readonly string[];
}

const scaleType = { group: 'autoscaling', version: 'v1', kind: 'Scale' };

function subresourcesOf(kind: Kind, version: KindVersion): BelowResource[] {
  const own = Object.entries(kind.behaviour.subresources ?? {}).map(([name, type]) => ({
    name,
    type,
    verbs: ['create'],
  }));
  const verbs = ['get', 'patch', 'update'];
  const type = { group: kind.group, version: version.name, kind: kind.kind };
  return [
    ...own,
    ...(kind.behaviour.finalize ? [{ name: 'finalize', type, verbs: ['update'] }] : []),
    ...(version.scale ? [{ name: 'scale', type: scaleType, verbs }] : []),
    ...(version.hasStatus ? [{ name: 'status', type, verbs }] : []),
  ];
}

/** Everything below `/api` or `/apis` in one answer. */
export function aggregatedDiscovery(registry: Registry, root: 'api' | 'apis', discoveryVersion: string): unknown {
  const groups = groupsOf(registry).filter((group) => (group.name === '') === (root === 'api'));
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${discoveryVersion}`,
    metadata: {},
    items: groups.map((group) => ({
      metadata: { ...(group.name === '' ? {} : { name: group.name }), creationTimestamp: null },
      versions: [...group.versions].map(([version, resources]) => ({
        version,
        resources: resources.map(aggregatedResource),
        freshness: 'Current',
      })),
    })),
  };
}

function aggregatedResource({ kind, version }: ServedResource): unknown {
  const below = subresourcesOf(kind, version);
  return {
    resource: kind.plural,
    responseKind: { group: kind.group, version: version.name, kind: kind.kind },
    scope: kind.isNamespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs: verbsOf(kind),
    ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories.length === 0 ? {} : { categories: kind.categories }),
    ...(below.length === 0
      ? {}
      : {
          subresources: below.map(({ name, type, verbs }) => ({ subresource: name, responseKind: { ...type }, verbs })),
        }),
  };
}
