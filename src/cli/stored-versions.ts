// Storage version migration: objects that were stored in an earlier version of their definition are written anew, in the
// version that is stored now, and the definition is told that no other is left.

import type { Client } from '../kube/client/client.ts';
import { isConflict, isNotFound } from '../kube/objects/api-error.ts';
import type { AnyObject, KubernetesObject, ResourceType } from '../kube/objects/object.ts';

export const definitionType: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
};

export interface DefinitionSpec {
  readonly group: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly names: { readonly plural: string; readonly kind: string };
  readonly versions: readonly { readonly name: string; readonly served: boolean; readonly storage: boolean }[];
}

export interface Definition extends KubernetesObject {
  spec: DefinitionSpec;
  status?: { storedVersions?: string[] };
}

export function storageVersion({ versions }: DefinitionSpec): string {
  return versions.find(({ storage }) => storage)?.name ?? '';
}

/** Does nothing if all objects are stored in the one version already. */
export async function migrateStoredVersions(client: Client, name: string): Promise<void> {
  const definition = await client.get<Definition>(definitionType, { name });
  const { group, names, scope } = definition.spec;
  const version = storageVersion(definition.spec);
  if ((definition.status?.storedVersions ?? []).every((stored) => stored === version)) return;
  const type: ResourceType = { group, version, ...names, isNamespaced: scope === 'Namespaced' };
  for await (const page of client.listPaged<AnyObject>(type)) {
    for (const object of page.items) await writeAnew(client, type, object);
  }
  const newest = await client.get<Definition>(definitionType, { name });
  await client.updateStatus<Definition>(definitionType, {
    ...newest,
    status: { ...newest.status, storedVersions: [version] },
  });
}

/** An object that somebody changed or deleted meanwhile is stored in the new version, or gone. */
async function writeAnew(client: Client, type: ResourceType, object: AnyObject): Promise<void> {
  try {
    await client.update(type, object);
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
  }
}
