// The id that a cluster joined its clusterset with, as its home has it.

import type { Client } from '../../kube/client/client.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { type ClusterProperty, clusterIdProperty, clusterPropertyType } from '../kinds/cluster-property.ts';

/** Undefined for a cluster that has joined nothing. */
export async function findClusterId(home: Client): Promise<string | undefined> {
  try {
    return (await home.get<ClusterProperty>(clusterPropertyType, { name: clusterIdProperty })).spec.value;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

export async function requireClusterId(home: Client): Promise<string> {
  const id = await findClusterId(home);
  if (id === undefined) throw new Error('this cluster has no id yet; join a clusterset, or give --cluster-id');
  return id;
}
