// For scenarios with sealed exports: the admin's word on the keys of members, and what somebody else reads at the broker.

import { type Cluster, clusterType } from '../src/clusterset/kinds/cluster.ts';
import { fingerprintOf, readPublicKey } from '../src/clusterset/rules/sealing/trusted-keys.ts';
import { type SimClusterSet, setName } from './clusterset.ts';
import { find } from './look.ts';

export const sealingSet = { sealing: { exports: 'Allowed' } } as const;

/** Of the key that a member reports; undefined while it reports none. */
export async function fingerprintAt(set: SimClusterSet, id: string): Promise<string | undefined> {
  const cluster = await find<Cluster>(set.broker.admin, clusterType, `${setName}/${id}`);
  const key = readPublicKey(cluster?.status?.sealingKey);
  return key && fingerprintOf(key);
}

/** As `portolan broker accept`: the keys that members report, once they have. */
export async function confirmKeys(set: SimClusterSet, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const sealingKey = await fingerprintAt(set, id);
    if (sealingKey === undefined) throw new Error(`cluster ${id} has reported no key`);
    const place = { namespace: setName, name: id };
    await set.broker.admin.patch(clusterType, place, { kind: 'merge', body: { spec: { sealingKey } } });
  }
}
