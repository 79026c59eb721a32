// The labels by which objects of an agent are told from those of people, so that leaving removes the former and keeps
// the latter. Pure.

import type { KubernetesObject } from '../../kube/objects/object.ts';
import { drainAnnotation } from '../kinds/service-export.ts';

/** On ServiceExports: the ServiceExportPolicy that made them. */
export const policyLabel = 'portolan.dev/export-policy';

/** On Services and ServiceExports: the FederatedService they were made from. */
export const placementLabel = 'portolan.dev/federated-service';

/** Value of the managed-by label of EndpointSlices behind imports. */
export const sliceManager = 'portolan.dev';

/** Conditions that an agent writes on a ServiceExport. */
export const exportConditionTypes: readonly string[] = ['Valid', 'Ready', 'Conflict'];

/** On ServiceExports: the clusters whose records of the service the broker stored before this cluster's, oldest first. It
 * outlives the agent, so that one that starts while the broker has lost its records still waits for its turn. */
export const exportedAfterAnnotation = 'portolan.dev/exported-after';

/** The export that a policy or a placement wants, with the annotations that others have put on the one that is there. */
export function withKeptMarks<T extends KubernetesObject>(wanted: T, present: T | undefined): T {
  const kept = [exportedAfterAnnotation, drainAnnotation].flatMap((name) => {
    const value = present?.metadata.annotations?.[name];
    return value === undefined ? [] : [[name, value]];
  });
  if (kept.length === 0) return wanted;
  const annotations = { ...wanted.metadata.annotations, ...Object.fromEntries(kept) };
  return { ...wanted, metadata: { ...wanted.metadata, annotations } };
}

/**
 * On what an agent made for a policy or a placement: as what, and in which cluster. A copy under another name, in
 * another namespace or cluster has wrong labels and is not ours.
 */
export const madeAnnotation = 'portolan.dev/made-as';

interface Named {
  readonly name: string;
  readonly namespace?: string;
}

export function madeMark({ namespace, name }: Named, clusterId: string): string {
  return `${clusterId}/${namespace}/${name}`;
}

/** Whether the agent of this cluster made this very object: nothing else may be deleted by it. */
export function isMadeHere(object: KubernetesObject, clusterId: string): boolean {
  return object.metadata.annotations?.[madeAnnotation] === madeMark(object.metadata, clusterId);
}
