// Random lives of sealed exports: audiences change, keys are replaced, members lose their keys, are removed and come back, agents
// die. Who has the right to an export must have its import within a bound, and who has none must lose it within it.

import type { createAgent } from '../src/clusterset/agent/agent.ts';
import { sealedRecordType } from '../src/clusterset/kinds/sealed-record.ts';
import { exportToAnnotation, sealAnnotation, serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { sealingSecretName } from '../src/clusterset/membership/membership.ts';
import { pinsData, rotationData } from '../src/clusterset/membership/sealing-secret.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { sealingNamespace } from '../src/kube/objects/ours.ts';
import { secretType } from '../src/kube/objects/secret.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { memberNamespace, SimClusterSet } from './clusterset.ts';
import { sliceLines } from './look.ts';
import { service, serviceExport, slice } from './manifests.ts';
import { confirmKeys, fingerprintAt, sealingSet } from './sealing.ts';
import { chance, pick, tolerate } from './step.ts';

const ids = ['east', 'west', 'north'];
const readers = ['west', 'north'];
const key = 'shop/db';
/** Of quiet: an agent that starts lists, waits and catches up; a key that was lost is looked at every 5 s. */
const boundMs = 30_000;
const steps = 4;

export interface SealedScheduleOptions {
  readonly seed: number;
  readonly createAgent?: typeof createAgent;
}

export async function runSealedSchedule({ seed, createAgent: create }: SealedScheduleOptions): Promise<string[]> {
  const set = await new SimClusterSet({
    ...{ seed, clusters: ids, set: sealingSet },
    ...(create === undefined ? {} : { createAgent: create }),
  }).start({ namespaces: ['shop'] });
  const { random } = set.simulation.world('the schedule');
  await set.time.advance(12_000);
  await confirmKeys(set, ids);
  const east = set.home('east').admin;
  await east.create(serviceType, service(key));
  await east.create(endpointSliceType, slice(key, { endpoints: ['10.1.0.1'] }));
  let audience: readonly string[] = ['west'];
  const export_ = () =>
    serviceExport(key, { annotations: { [sealAnnotation]: 'true', [exportToAnnotation]: audience.join(',') } });
  await east.create(serviceExportType, export_());
  const wrong: string[] = [];
  let address = '10.1.0.1';
  let isExported = true;
  const members = new Set(ids);
  const done: string[] = [];

  const moves: Record<string, () => Promise<void>> = {
    audience: async () => {
      audience = readers.filter(() => chance(random, 0.5));
      const body = { metadata: { annotations: { [exportToAnnotation]: audience.join(',') } } };
      await tolerate(east.patch(serviceExportType, { namespace: 'shop', name: 'db' }, { kind: 'merge', body }));
    },
    rotate: async () => {
      const seconds = Math.ceil(set.simulation.world('clock').clock.wallMs() / 1000);
      const body = { data: rotationData(seconds) };
      await tolerate(east.patch(secretType, secretPlace, { kind: 'merge', body }));
    },
    endpoint: async () => {
      address = `10.1.0.${2 + Math.floor(random.float() * 200)}`;
      const body = { endpoints: slice(key, { endpoints: [address] }).endpoints };
      await east.patch(endpointSliceType, { namespace: 'shop', name: 'db-a' }, { kind: 'merge', body });
    },
    unexport: async () => {
      isExported = !isExported;
      if (isExported) await tolerate(east.create(serviceExportType, export_()));
      else await tolerate(east.delete(serviceExportType, { namespace: 'shop', name: 'db' }));
    },
    restart: async () => {
      const id = pick(random, ids);
      set.killAgent(id);
      set.startAgent(id);
    },
    leave: async () => {
      const id = pick(random, readers);
      if (members.delete(id)) await set.leave(id);
      else {
        await set.join(id);
        members.add(id);
        set.killAgent(id);
        set.startAgent(id);
      }
    },
    'lose keys': async () => {
      const id = pick(random, ids);
      if (!members.has(id)) return;
      set.killAgent(id);
      await tolerate(set.home(id).admin.delete(secretType, secretPlace));
      set.startAgent(id);
    },
    'put back': async () => {
      const { items } = await set.broker.admin.list(sealedRecordType, { namespace: memberNamespace('east') });
      const record = items.length === 0 ? undefined : pick(random, items);
      if (record === undefined) return;
      await set.time.advance(3_000);
      const body = { spec: (record as { spec?: unknown }).spec };
      await tolerate(set.broker.admin.patch(sealedRecordType, record.metadata, { kind: 'merge', body }));
    },
  };

  for (let step = 0; step < steps; step += 1) {
    const count = 1 + Math.floor(random.float() * 3);
    for (let index = 0; index < count; index += 1) {
      const name = pick(random, Object.keys(moves));
      done.push(name);
      await moves[name]!();
      await set.time.advance(Math.floor(random.float() * 4_000));
    }
    // People do what is theirs: keys are compared and confirmed, and trusted again where they changed.
    for (let turn = 0; turn < 2; turn += 1) {
      await set.time.advance(12_000);
      await tend(set, members);
    }
    await set.time.advance(boundMs);
    for (const id of readers) {
      const lines = await sliceLines(set.home(id).admin, key);
      const may = isExported && audience.includes(id) && members.has(id);
      const wanted = may ? [`east: ${address} on http>8080`] : [];
      if (lines.join() !== wanted.join() && members.has(id))
        wrong.push(
          `${id} has ${lines.join() || 'nothing'}, not ${wanted.join() || 'nothing'}, after ${done.join(', ')}`,
        );
    }
    if (wrong.length > 0) break;
  }
  for (const id of ids) set.killAgent(id);
  return wrong;
}

const secretPlace = { namespace: sealingNamespace, name: sealingSecretName };

async function tend(set: SimClusterSet, members: ReadonlySet<string>): Promise<void> {
  const prints = new Map<string, string>();
  for (const id of members) {
    const fingerprint = await fingerprintAt(set, id);
    if (fingerprint === undefined) continue;
    prints.set(id, fingerprint);
    await confirmKeys(set, [id]);
  }
  for (const id of members) {
    const others = new Map([...prints].filter(([other]) => other !== id));
    const body = { data: pinsData(others) };
    await tolerate(set.home(id).admin.patch(secretType, secretPlace, { kind: 'merge', body }));
  }
}
