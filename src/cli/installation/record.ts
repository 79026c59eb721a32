// The record of an installation, in its own cluster: the values that were given and the objects that were written. An upgrade
// goes on from those values, and removes objects that are no longer part of the installation.

import { yaml } from '../../base/yaml.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import type { ResourceType } from '../../kube/objects/object.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import type { GivenValues } from './read-values.ts';

export const recordRef = { namespace: systemNamespace, name: 'portolan-installation' } as const;

export interface WrittenObject {
  readonly type: ResourceType;
  readonly ref: { readonly namespace?: string; readonly name: string };
}

export interface InstallationRecord {
  readonly values: GivenValues;
  readonly objects: readonly WrittenObject[];
}

export function recordManifest(values: GivenValues, objects: readonly Manifest[]): Manifest {
  const written = objects.map(({ type, object }) => JSON.stringify({ type, ref: refOf(object.metadata) }));
  return manifest(configMapType, recordRef, {
    data: { values: yaml().stringify(values), objects: `[\n${written.join(',\n')}\n]\n` },
  });
}

/** Undefined if the installation was made by another way, or by a version that kept none. */
export async function readRecord(client: Client): Promise<InstallationRecord | undefined> {
  const present = await getOrUndefined<ConfigMap>(client, configMapType, recordRef);
  if (present === undefined) return undefined;
  const { values = '', objects = '[]' } = present.data ?? {};
  try {
    return { values: (yaml().parse(values) ?? {}) as GivenValues, objects: JSON.parse(objects) as WrittenObject[] };
  } catch (cause) {
    throw new Error(
      `ConfigMap ${recordRef.namespace}/${recordRef.name}, the record of this installation, cannot be read; delete it, and give all values with --values`,
      { cause },
    );
  }
}

/** Objects of the record that are no longer wanted. Namespaces stay. */
export function obsoleteObjects(record: InstallationRecord | undefined, wanted: readonly Manifest[]): WrittenObject[] {
  const kept = new Set(wanted.map(({ type, object }) => keyOf(type, object.metadata)));
  return (record?.objects ?? []).filter(({ type, ref }) => type.kind !== 'Namespace' && !kept.has(keyOf(type, ref)));
}

function refOf({ namespace, name }: WrittenObject['ref']): WrittenObject['ref'] {
  return namespace === undefined ? { name } : { namespace, name };
}

function keyOf({ group, plural }: ResourceType, { namespace = '', name }: WrittenObject['ref']): string {
  return `${plural}.${group}/${namespace}/${name}`;
}
