// The Scale kind: how many replicas of an object are wanted and how many there are, in one form for all kinds that have
// such numbers. Never stored: it is read from its parent and written into it.

import { isObject, type JsonObject, setMember } from '../../base/json.ts';
import { checkNotNegative } from '../../kube/objects/checks.ts';
import type { FieldError } from '../../kube/objects/field-error.ts';
import type { AnyObject, KubernetesObject } from '../../kube/objects/object.ts';
import type { Kind, ScaleFields } from '../model/kind.ts';
import { builtinKind } from './builtin.ts';

interface Scale extends KubernetesObject {
  spec?: { replicas?: number };
  status?: { replicas: number; selector?: string };
}

export const scaleKind: Kind = builtinKind<Scale>({
  group: 'autoscaling',
  version: 'v1',
  kind: 'Scale',
  plural: 'scales',
  isNamespaced: true,
  validate: ({ spec }) => {
    const errors: FieldError[] = [];
    checkNotNegative(errors, 'spec.replicas', spec?.replicas);
    return errors;
  },
});

/** Numbers that the parent does not have are 0. */
export function scaleOf({ replicas, statusReplicas, selectorOf }: ScaleFields, parent: AnyObject): AnyObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = parent.metadata;
  const selector = selectorOf(parent);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp } as AnyObject['metadata'],
    spec: { replicas: numberAt(parent, replicas) ?? 0 },
    status: { replicas: numberAt(parent, statusReplicas) ?? 0, ...(selector && { selector }) },
  };
}

export function replicasOf(scale: AnyObject): number | undefined {
  return numberAt(scale, ['spec', 'replicas']);
}

export function numberAt(object: AnyObject, path: readonly string[]): number | undefined {
  const step = (at: unknown, name: string) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined);
  const value = path.reduce<unknown>(step, object);
  return typeof value === 'number' ? value : undefined;
}

/** Changes the object; what lies on the way and is no object is replaced by one. */
export function setAt(object: AnyObject, path: readonly string[], value: number): void {
  let at: JsonObject = object;
  for (const name of path.slice(0, -1)) {
    const next: unknown = Object.hasOwn(at, name) ? at[name] : undefined;
    const child = isObject(next) ? next : {};
    if (child !== next) setMember(at, name, child);
    at = child;
  }
  setMember(at, path.at(-1)!, value);
}
