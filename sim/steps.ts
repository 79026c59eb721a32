// Events that can happen to a clusterset in a random run. Each step picks itself a place by the random it is given,
// does one thing, and says in words what it was.

import type { Random } from '../src/base/world.ts';
import { federatedServiceType } from '../src/clusterset/kinds/federated-service.ts';
import { serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { recordName } from '../src/clusterset/rules/names.ts';
import { configMapType } from '../src/kube/objects/config-map.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { type ServiceSpec, serviceType } from '../src/kube/objects/service.ts';
import { changeExportRights, deriveOrAllocate, drainCluster, drainService } from './admin-steps.ts';
import { setName } from './clusterset.ts';
import { quiet } from './lossy.ts';
import { service, serviceExport, slice } from './manifests.ts';
import { chance, pick, refOf, type Step, type StepContext, tolerate } from './step.ts';

const names = ['shop/a', 'shop/b', 'shop/c'];

/** Weights: how often each step comes, beside the others. */
const steps: readonly (readonly [number, Step])[] = [
  [8, createEverything],
  [4, changeService],
  [4, changeEndpoints],
  [4, deleteExport],
  [2, deleteService],
  [1, editImport],
  [2, federate],
  [1, unfederate],
  [2, drainService],
  [1, drainCluster],
  [2, changeExportRights],
  [1, deriveOrAllocate],
  [3, killAgent],
  [4, startAgent],
  [3, crashSoon],
  [2, cutLink],
  [3, healLink],
  [2, startTrouble],
  [2, endTrouble],
  [1, restartBroker],
  [1, breakStreams],
  [1, copyBroker],
  [1, restoreBroker],
];

/** The lease observers, and the two that would be next. */
export const observersMax = 5;

export async function randomStep(context: StepContext): Promise<string> {
  const total = steps.reduce((sum, [weight]) => sum + weight, 0);
  let at = context.random.float() * total;
  const [, step] = steps.find(([weight]) => (at -= weight) < 0) ?? steps[0]!;
  // In a large set the first members observe the others: half of what happens happens to them.
  const first = context.ids.length > observersMax && chance(context.random, 0.5);
  const ids = first ? context.ids.slice(0, observersMax) : context.ids;
  const place = { id: pick(context.random, ids), key: pick(context.random, names) };
  return step(context, place);
}

async function createEverything(
  { set, random }: StepContext,
  { id, key }: { id: string; key: string },
): Promise<string> {
  const { admin } = set.home(id);
  const spec = randomService(random);
  await tolerate(admin.create(serviceType, service(key, spec)));
  await tolerate(
    admin.create(endpointSliceType, slice(key, { endpoints: randomEndpoints(random), ports: slicePorts(spec) })),
  );
  const annotations = chance(random, 0.1) ? { 'portolan.dev/export-to': 'east' } : undefined;
  const exportSpec = chance(random, 0.2) ? { exportedLabels: { from: id } } : undefined;
  await tolerate(admin.create(serviceExportType, serviceExport(key, { annotations, spec: exportSpec })));
  return `${id} exports ${key} as ${JSON.stringify(spec)}`;
}

async function changeService({ set, random }: StepContext, { id, key }: { id: string; key: string }): Promise<string> {
  const { clusterIP: _immutable, ...spec } = randomService(random);
  await tolerate(set.home(id).admin.patch(serviceType, refOf(key), { kind: 'merge', body: { spec } }));
  return `${id} changes ${key} to ${JSON.stringify(spec)}`;
}

async function changeEndpoints(
  { set, random }: StepContext,
  { id, key }: { id: string; key: string },
): Promise<string> {
  const { metadata, endpoints } = slice(key, { endpoints: randomEndpoints(random) });
  await tolerate(set.home(id).admin.patch(endpointSliceType, metadata, { kind: 'merge', body: { endpoints } }));
  return `${id} changes the endpoints of ${key}`;
}

async function deleteExport({ set }: StepContext, { id, key }: { id: string; key: string }): Promise<string> {
  await tolerate(set.home(id).admin.delete(serviceExportType, refOf(key)));
  return `${id} unexports ${key}`;
}

async function deleteService({ set, random }: StepContext, { id, key }: { id: string; key: string }): Promise<string> {
  await tolerate(set.home(id).admin.delete(serviceType, refOf(key)));
  if (chance(random, 0.5))
    await tolerate(set.home(id).admin.delete(endpointSliceType, slice(key, { endpoints: [] }).metadata));
  return `${id} deletes service ${key}`;
}

async function editImport({ set, random }: StepContext, { id, key }: { id: string; key: string }): Promise<string> {
  const { admin } = set.home(id);
  const body = { spec: { sessionAffinity: 'ClientIP', ports: [] } };
  if (chance(random, 0.5)) await tolerate(admin.delete(serviceImportType, refOf(key)));
  else await tolerate(admin.patch(serviceImportType, refOf(key), { kind: 'merge', body }));
  return `somebody meddles with import ${key} in ${id}`;
}

async function federate({ set, random, ids }: StepContext, { id, key }: { id: string; key: string }): Promise<string> {
  const { clusterIP: _own, ...spec } = randomService(random);
  const clusters = chance(random, 0.5) ? [id] : [...ids];
  const name = recordName(refOf(key));
  const metadata = { name, namespace: setName };
  const body = { spec: { clusters, template: { spec } } };
  const object = { apiVersion: 'portolan.dev/v1alpha1', kind: 'FederatedService', metadata, ...body };
  if (!set.broker.isUp) return 'nobody can federate: the broker is down';
  await tolerate(set.broker.admin.create(federatedServiceType, object));
  await tolerate(set.broker.admin.patch(federatedServiceType, metadata, { kind: 'merge', body }));
  return `${key} is to be in ${clusters.join(', ')} as ${JSON.stringify(spec)}`;
}

async function unfederate({ set }: StepContext, { key }: { key: string }): Promise<string> {
  if (!set.broker.isUp) return 'nobody can unfederate: the broker is down';
  const name = recordName(refOf(key));
  await tolerate(set.broker.admin.delete(federatedServiceType, { namespace: setName, name }));
  return `${key} is placed nowhere any more`;
}

async function killAgent({ set }: StepContext, { id }: { id: string }): Promise<string> {
  set.killAgent(id);
  return `agent of ${id} is killed`;
}

async function startAgent({ set }: StepContext, { id }: { id: string }): Promise<string> {
  if (!set.isAgentRunning(id)) set.startAgent(id);
  return `agent of ${id} runs`;
}

async function crashSoon({ lossy, random }: StepContext, { id }: { id: string }): Promise<string> {
  const inWrites = 1 + Math.floor(random.float() * 6);
  const when = chance(random, 0.5) ? 'before' : 'after';
  lossy.crashes.push({ agent: id, inWrites, when });
  return `agent of ${id} will die ${when} its write number ${inWrites}`;
}

async function cutLink({ set, random }: StepContext, { id }: { id: string }): Promise<string> {
  const state = chance(random, 0.5) ? 'refused' : 'silent';
  set.setBrokerLink(id, state);
  return `${id} and the broker: ${state}`;
}

async function healLink({ set }: StepContext, { id }: { id: string }): Promise<string> {
  set.setBrokerLink(id, 'up');
  return `${id} and the broker: up`;
}

async function startTrouble({ lossy, random }: StepContext): Promise<string> {
  const rate = () => random.float() * 0.2;
  lossy.rates = { lost: rate(), unanswered: rate(), repeated: rate(), delayed: rate() };
  return 'the network becomes unreliable';
}

async function endTrouble({ lossy }: StepContext): Promise<string> {
  lossy.rates = quiet;
  return 'the network is reliable';
}

async function restartBroker({ set, random }: StepContext): Promise<string> {
  const downMs = random.float() * 5_000;
  set.broker.kill();
  await set.time.advance(downMs);
  await set.broker.start();
  return `the broker was down for ${Math.round(downMs)} ms`;
}

async function copyBroker({ set, copies }: StepContext): Promise<string> {
  copies.broker = set.broker.backup();
  return 'the broker is copied';
}

/** Somebody may have written so much since that revisions the agents know stand for something else. */
async function restoreBroker({ set, copies, random }: StepContext): Promise<string> {
  if (copies.broker === undefined) return 'there is no copy of the broker';
  const downMs = random.float() * 5_000;
  const writes = Math.floor(random.float() * 80);
  set.broker.kill();
  await set.time.advance(downMs);
  await set.broker.restore(copies.broker);
  for (let index = 0; index < writes; index += 1) {
    const metadata = { namespace: setName, name: `note-${Math.floor(random.float() * 1e9)}` };
    await tolerate(set.broker.admin.create(configMapType, { apiVersion: 'v1', kind: 'ConfigMap', metadata }));
  }
  return `the broker was down for ${Math.round(downMs)} ms and is as it was when copied, ${writes} writes later`;
}

async function breakStreams({ set, random }: StepContext, { id }: { id: string }): Promise<string> {
  set.simulation.network.breakStreams(chance(random, 0.5) ? { from: `agent-${id}` } : {});
  return 'open connections are reset';
}

export function randomService(random: Random): ServiceSpec {
  const ports = pick(random, [
    [{ name: 'http', port: 80 }],
    [{ name: 'http', port: 80 }],
    [{ name: 'http', port: 8080 }],
    [{ name: 'web', port: 80 }],
    [
      { name: 'http', port: 80 },
      { name: 'admin', port: 81 },
    ],
  ]);
  return {
    ports,
    ...(chance(random, 0.2) ? { clusterIP: 'None' } : {}),
    sessionAffinity: chance(random, 0.2) ? 'ClientIP' : 'None',
  };
}

function slicePorts(spec: ServiceSpec) {
  return (spec.ports ?? []).map(({ name, port }) => ({ name, port: port + 8000, protocol: 'TCP' as const }));
}

function randomEndpoints(random: Random): string[] {
  const count = Math.floor(random.float() * 3);
  return Array.from(
    { length: count },
    (_, index) => `${chance(random, 0.3) ? '!' : ''}10.${index}.0.${1 + Math.floor(random.float() * 200)}`,
  );
}
