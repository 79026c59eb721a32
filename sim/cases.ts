// Many random services in one clusterset without faults: what was predicted from the homes is what the clusters show,
// conditions and their messages included. `npm run sim -- --cases 1000`; a shorter run is among the tests.

import { serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { SimClusterSet } from './clusterset.ts';
import { service, serviceExport, slice } from './manifests.ts';
import { findViolations } from './properties.ts';
import { chance } from './step.ts';
import { randomService } from './steps.ts';
import { readTruth } from './truth.ts';

export interface CasesResult {
  readonly violations: readonly string[];
  readonly conflicting: number;
}

export async function runCases(options: { readonly count: number; readonly seed: number }): Promise<CasesResult> {
  const ids = ['east', 'west', 'north'];
  const set = await new SimClusterSet({ clusters: ids, seed: options.seed }).start({ namespaces: ['shop'] });
  const { random } = set.simulation.world('cases');
  for (let index = 0; index < options.count; index += 1) {
    for (const id of ids) if (chance(random, 0.8)) await createCase(set, id, `shop/s${index}`);
    if (index % 50 === 0) await set.time.advance(1_000);
  }
  await set.time.advance(30_000);
  const truth = await readTruth(set, {});
  const conflicting = truth.keys.filter((key) => (truth.merge(key)?.conflicts.length ?? 0) > 0).length;
  return { violations: await findViolations(set, truth), conflicting };

  async function createCase(where: SimClusterSet, id: string, key: string): Promise<void> {
    const { admin } = where.home(id);
    if (chance(random, 0.95)) await admin.create(serviceType, service(key, randomService(random)));
    await admin.create(endpointSliceType, slice(key, { endpoints: ['10.1.0.1'] }));
    await admin.create(serviceExportType, serviceExport(key));
  }
}
