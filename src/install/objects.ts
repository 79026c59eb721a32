// All objects of an installation, in the order in which they are written. Pure.

import { type Manifest, manifest } from '../kube/objects/manifest.ts';
import { namespaceType } from '../kube/objects/namespace.ts';
import { externalNamespace, systemNamespace } from '../kube/objects/ours.ts';
import { rbacGroup } from '../kube/objects/rbac.ts';
import { partsOf } from './parts.ts';
import type { PartName, Values } from './values.ts';
import { objectsOfPart } from './workload.ts';

export function namespaceObjects(): Manifest[] {
  return [systemNamespace, externalNamespace].map((name) => manifest(namespaceType, { name }, {}));
}

export function objectsByPart(values: Values): Map<PartName, Manifest[]> {
  return new Map(partsOf(values).map((part) => [part.name, objectsOfPart(part, values)]));
}

export function objectsOf(values: Values): Manifest[] {
  const parts = [...objectsByPart(values)].filter(([name]) => values[name].enabled);
  return [...namespaceObjects(), ...parts.flatMap(([, objects]) => objects)];
}

/** Namespace, accounts and rights, for parts that do not run as Pods of this cluster. */
export function rightsOnly(objects: readonly Manifest[]): Manifest[] {
  return objects.filter(
    ({ type }) => type.group === rbacGroup || type.kind === 'Namespace' || type.kind === 'ServiceAccount',
  );
}
