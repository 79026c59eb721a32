// Random cases for `portolan plan`: what it says of a file is held against what running clusters show after the file has
// been applied, conditions and messages included. `node test/clusterset-plan-cases.ts --cases 1000 --seed 1`; a shorter run
// is among the tests.

import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { memberNamespace, SimClusterSet, setName } from '../sim/clusterset.ts';
import { service, serviceExport, slice } from '../sim/manifests.ts';
import { chance, pick } from '../sim/step.ts';
import { randomService } from '../sim/steps.ts';
import type { Host } from '../src/base/host.ts';
import { isSameJson } from '../src/base/json.ts';
import type { Random } from '../src/base/world.ts';
import { type ExportPlan, planExports } from '../src/cli/clusterset/plan.ts';
import { readPlanFile } from '../src/cli/clusterset/plan-file.ts';
import { exportToAnnotation, type ServiceExport, serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import type { MembershipRecord } from '../src/clusterset/membership/membership.ts';
import { getOrUndefined } from '../src/kube/client/absent.ts';
import { install } from '../src/kube/client/apply.ts';
import type { WantedCondition } from '../src/kube/objects/conditions.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { type Service, serviceType } from '../src/kube/objects/service.ts';

export interface PlanCasesResult {
  readonly wrong: readonly string[];
  readonly cases: number;
  /** In how many the clusters disagree afterwards. */
  readonly conflicting: number;
}

const ids = ['east', 'north', 'west'];
const batchSize = 50;
// So long that a hostname of fifty characters has no room in a DNS name.
const longZone = ['clusterset', 'z'.repeat(60), 'z'.repeat(60), 'z'.repeat(60)].join('.');
// Some of its addresses look different from outside, one of the translations is none, and not all of them are allowed.
const narrowAddresses = {
  allowedRanges: ['100.64.0.0/16', '10.2.0.0/16'],
  translations: [
    { from: '10.1.0.0/16', to: '100.64.0.0/16' },
    { from: '10.9.0.0/16', to: 'fd00::/64' },
  ],
};
const endpoints = ['10.1.0.1', '10.2.0.1', '10.3.0.1', '127.0.0.1', 'web-0@10.1.0.1', `${'h'.repeat(50)}@10.1.0.2`];

export async function runPlanCases(options: {
  readonly count: number;
  readonly seed: number;
}): Promise<PlanCasesResult> {
  const wrong: string[] = [];
  let conflicting = 0;
  for (let done = 0; done < options.count; done += batchSize) {
    const count = Math.min(batchSize, options.count - done);
    const batch = await runBatch(count, options.seed + done / batchSize);
    wrong.push(...batch.wrong);
    conflicting += batch.conflicting;
  }
  return { wrong, cases: options.count, conflicting };
}

interface Case {
  readonly key: string;
  readonly cluster: string;
  readonly file: string;
  readonly plan: ExportPlan;
}

async function runBatch(count: number, seed: number) {
  const set = await new SimClusterSet({
    clusters: ids,
    seed,
    set: { ports: seed % 2 === 1 ? 'union' : 'intersection', dns: { zone: longZone } },
    member: (id) => (id === 'east' ? narrowAddresses : {}),
  }).start({ namespaces: ['shop'] });
  const { random } = set.simulation.world('cases');
  const keys = Array.from({ length: count }, (_, index) => `shop/s${index}`);
  for (const key of keys) {
    for (const id of ids) if (chance(random, 0.8)) await prepare(set, id, key, random);
    if (chance(random, 0.3)) await set.time.advance(1_000);
  }
  await set.time.advance(10_000);
  const cases: Case[] = [];
  for (const key of keys) cases.push(await planCase(set, key, random));
  const revision = set.broker.revision;
  for (const one of cases) await apply(set, one);
  if (set.broker.revision !== revision) throw new Error('planning or applying wrote to the broker without an agent');
  await set.time.advance(20_000);
  const wrong: string[] = [];
  for (const one of cases) for (const what of await compare(set, one)) wrong.push(`seed ${seed} ${one.key}: ${what}`);
  return { wrong, conflicting: cases.filter(({ plan }) => plan.exports[0]!.conflicts.length > 0).length };
}

async function prepare(set: SimClusterSet, id: string, key: string, random: Random): Promise<void> {
  const { admin } = set.home(id);
  if (chance(random, 0.95)) await admin.create(serviceType, service(key, randomService(random)));
  await admin.create(endpointSliceType, slice(key, { endpoints: [pick(random, endpoints)] }));
  if (chance(random, 0.9)) await admin.create(serviceExportType, serviceExport(key, labelsOf(random)));
}

function labelsOf(random: Random): { spec?: ServiceExport['spec'] } {
  return chance(random, 0.3) ? { spec: { exportedLabels: { tier: pick(random, ['gold', 'silver']) } } } : {};
}

async function planCase(set: SimClusterSet, key: string, random: Random): Promise<Case> {
  const cluster = pick(random, ids);
  const home = set.home(cluster).admin;
  const file = await randomFile(set, cluster, key, random);
  const before = set.home(cluster).revision;
  const host: Host = { environment: {}, readText: async () => file, run: async () => ({ kind: 'timed out' }) };
  const objects = await readPlanFile(host, 'file', 'default');
  const world = set.simulation.world(`planner-${cluster}`);
  const membership = membershipOf(cluster);
  const plan = await planExports({ world }, { home, broker: set.broker.admin, membership, objects });
  if (set.home(cluster).revision !== before) throw new Error(`planning ${key} changed the home of ${cluster}`);
  return { key, cluster, file, plan };
}

async function randomFile(set: SimClusterSet, cluster: string, key: string, random: Random): Promise<string> {
  const [namespace, name] = key.split('/') as [string, string];
  const present = await getOrUndefined<Service>(set.home(cluster).admin, serviceType, { namespace, name });
  const annotations = chance(random, 0.1) ? { annotations: { [exportToAnnotation]: pick(random, ids) } } : {};
  const documents: object[] = [serviceExport(key, { ...annotations, ...labelsOf(random) })];
  if (chance(random, 0.6)) {
    const { clusterIP, ...spec } = randomService(random);
    const isNew = present === undefined && clusterIP !== undefined;
    documents.push(service(key, isNew ? { ...spec, clusterIP } : spec));
  }
  return documents.map((document) => stringify(document)).join('---\n');
}

function membershipOf(clusterId: string): MembershipRecord {
  const nothing = { accountNamespace: '', accountName: '', server: '', certificateAuthority: '' };
  const token = { token: '', tokenIssuedAt: '', tokenExpiresAt: '' };
  return { clusterset: setName, clusterId, namespace: memberNamespace(clusterId), ...nothing, ...token };
}

async function apply(set: SimClusterSet, { cluster, file }: Case): Promise<void> {
  const { admin } = set.home(cluster);
  const host: Host = { environment: {}, readText: async () => file, run: async () => ({ kind: 'timed out' }) };
  const { exports, services } = await readPlanFile(host, 'file', 'default');
  for (const object of services.values()) {
    const { namespace, name } = object.metadata;
    const isThere = (await getOrUndefined(admin, serviceType, { namespace, name })) !== undefined;
    if (isThere) await admin.patch(serviceType, { namespace, name }, { kind: 'merge', body: { spec: object.spec } });
    else await admin.create(serviceType, object);
  }
  for (const object of exports.values()) await install(admin, { type: serviceExportType, object });
}

async function compare(set: SimClusterSet, { key, cluster, plan }: Case): Promise<string[]> {
  const [namespace, name] = key.split('/') as [string, string];
  const prediction = plan.exports[0]!;
  const wrong: string[] = [];
  const check = (what: string, planned: unknown, shown: unknown) => {
    if (isSameJson(planned, shown)) return;
    wrong.push(`${what}: planned ${JSON.stringify(planned)}, shown ${JSON.stringify(shown)}`);
  };
  check(`conditions in ${cluster}`, prediction.conditions, await conditionsIn(set, cluster, key));
  const shown = await getOrUndefined<ServiceImport>(set.home(cluster).admin, serviceImportType, { namespace, name });
  const { ips: _ips, ...spec } = shown?.spec ?? { ips: [] };
  check(`import in ${cluster}`, prediction.import ?? {}, spec);
  check(`clusters of the import in ${cluster}`, prediction.clusters, clustersOf(shown));
  for (const { cluster: other, after } of prediction.elsewhere) {
    check(`conflict in ${other}`, after[2], (await conditionsIn(set, other, key))[2]);
  }
  return wrong;
}

function clustersOf(object: ServiceImport | undefined): string[] {
  return (object?.status?.clusters ?? []).map(({ cluster }) => cluster);
}

async function conditionsIn(set: SimClusterSet, id: string, key: string): Promise<WantedCondition[]> {
  const [namespace, name] = key.split('/') as [string, string];
  const found = await getOrUndefined<ServiceExport>(set.home(id).admin, serviceExportType, { namespace, name });
  return (found?.status?.conditions ?? []).map(({ type, status, reason, message }) => ({
    type,
    status,
    reason,
    message,
  }));
}

if (process.argv[1]?.endsWith('clusterset-plan-cases.ts')) {
  const { values } = parseArgs({ options: { cases: { type: 'string' }, seed: { type: 'string' } } });
  const { wrong, cases, conflicting } = await runPlanCases({
    count: Number(values.cases ?? 1000),
    seed: Number(values.seed ?? 1),
  });
  for (const line of wrong.slice(0, 20)) console.log(`wrong: ${line}`);
  console.log(`${cases} plans, ${conflicting} of them of conflicts, ${wrong.length} wrong`);
  process.exitCode = wrong.length === 0 ? 0 : 1;
}
