// Changes that admins make in a random run: drain, rights to export, and the source of addresses.

import { clusterType } from '../src/clusterset/kinds/cluster.ts';
import { drainAnnotation, serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { setName } from './clusterset.ts';
import { chance, pick, refOf, type StepContext, tolerate } from './step.ts';

export async function drainService(
  { set, random }: StepContext,
  { id, key }: { id: string; key: string },
): Promise<string> {
  const isDraining = chance(random, 0.6);
  const body = { metadata: { annotations: { [drainAnnotation]: isDraining ? 'true' : null } } };
  await tolerate(set.home(id).admin.patch(serviceExportType, refOf(key), { kind: 'merge', body }));
  return `${id} ${isDraining ? 'drains' : 'no longer drains'} ${key}`;
}

export async function drainCluster(context: StepContext, { id }: { id: string }): Promise<string> {
  const draining = chance(context.random, 0.6) ? true : null;
  return changeCluster(context, id, { draining });
}

export async function changeExportRights(
  context: StepContext,
  { id, key }: { id: string; key: string },
): Promise<string> {
  const mayExport = pick(context.random, [null, null, ['shop'], [key], ['shop/a', 'shop/b'], []]);
  return changeCluster(context, id, { mayExport });
}

export async function deriveOrAllocate(context: StepContext, { id }: { id: string }): Promise<string> {
  return changeCluster(context, id, { clusterSetIP: pick(context.random, ['derived', 'allocate', null]) });
}

async function changeCluster({ set }: StepContext, id: string, spec: object): Promise<string> {
  const what = `cluster ${id} gets ${JSON.stringify(spec)}`;
  if (!set.broker.isUp) return `not while the broker is down: ${what}`;
  const ref = { namespace: setName, name: id };
  await tolerate(set.broker.admin.patch(clusterType, ref, { kind: 'merge', body: { spec } }));
  return what;
}
