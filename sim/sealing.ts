// For scenarios with sealed exports: a set in which they work, the admin's word on the keys of members, and what is read at
// the broker.

import { type Cluster, clusterType } from '../src/clusterset/kinds/cluster.ts';
import { type SealedRecord, sealedRecordType } from '../src/clusterset/kinds/sealed-record.ts';
import { exportToAnnotation, sealAnnotation, serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { sealingCondition } from '../src/clusterset/rules/sealing/sealing-condition.ts';
import { fingerprintOf, readPublicKey } from '../src/clusterset/rules/sealing/trusted-keys.ts';
import { conditionOf } from '../src/kube/objects/conditions.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { memberNamespace, SimClusterSet, type SimClusterSetOptions, setName } from './clusterset.ts';
import { find, importLine } from './look.ts';
import { service, serviceExport, slice } from './manifests.ts';

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

type Options = Partial<SimClusterSetOptions> & { readonly confirmed?: readonly string[] };

export const names = ['east', 'west', 'north'];

export async function startSealing({ clusters = names, confirmed = clusters, ...more }: Options = {}) {
  const set = await new SimClusterSet({ clusters, set: sealingSet, ...more }).start({ namespaces: ['shop'] });
  await set.time.advance(15_000);
  await confirmKeys(set, confirmed);
  await set.time.advance(15_000);
  return set;
}

export const sealedTo = (...ids: string[]) => ({ [sealAnnotation]: 'true', [exportToAnnotation]: ids.join(',') });

export async function annotate(
  set: SimClusterSet,
  id: string,
  key: string,
  annotations: Record<string, string | null>,
) {
  const [namespace = '', name = ''] = key.split('/');
  const body = { metadata: { annotations } };
  await set.home(id).admin.patch(serviceExportType, { namespace, name }, { kind: 'merge', body });
}

/** A service with one endpoint, sealed for the named clusters from the start. */
export async function exportSealed(set: SimClusterSet, id: string, key: string, ids: readonly string[]) {
  const { admin } = set.home(id);
  await admin.create(serviceType, service(key));
  await admin.create(endpointSliceType, slice(key, { endpoints: [`10.1.0.${id.length}`] }));
  await admin.create(serviceExportType, serviceExport(key, { annotations: sealedTo(...ids) }));
}

export async function sealedRecords(set: SimClusterSet, id: string): Promise<SealedRecord[]> {
  const { items } = await set.broker.admin.list<SealedRecord>(sealedRecordType, { namespace: memberNamespace(id) });
  return items;
}

export async function sealing(set: SimClusterSet, id: string): Promise<string> {
  const cluster = await find<Cluster>(set.broker.admin, clusterType, `${setName}/${id}`);
  const condition = conditionOf(cluster?.status?.conditions, sealingCondition);
  return `${condition?.status}/${condition?.reason}: ${condition?.message}`;
}

export const isImported = async (set: SimClusterSet, id: string, key = 'shop/db') =>
  (await importLine(set.home(id).admin, key)).includes('from');
