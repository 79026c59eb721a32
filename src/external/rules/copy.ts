// The copy that a member keeps of an object of the broker: told apart by name and label, as old as the original. Pure.

import type { KubernetesObject } from '../../kube/objects/object.ts';
import { managedByLabel, managerName } from '../../kube/objects/ours.ts';
import { copyName, createdAnnotation, originLabel } from '../kinds/mesh-external-service.ts';

const ownAnnotations = 'portolan.dev/';

export function planCopy(original: KubernetesObject, namespace: string): KubernetesObject {
  const { name, labels = {}, annotations = {}, creationTimestamp } = original.metadata;
  const kept = Object.entries(annotations).filter(([key]) => key.startsWith(ownAnnotations));
  const created: [string, string][] = creationTimestamp === undefined ? [] : [[createdAnnotation, creationTimestamp]];
  return {
    apiVersion: original.apiVersion,
    kind: original.kind,
    metadata: {
      name: copyName(name),
      namespace,
      labels: { ...labels, [originLabel]: 'broker', [managedByLabel]: managerName },
      annotations: Object.fromEntries([...kept, ...created]),
    },
    ...('spec' in original ? { spec: original.spec } : {}),
  };
}
