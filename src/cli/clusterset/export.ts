// `portolan export`: offers a Service of this cluster to the clusterset. Says beforehand what that would do to others.

import type { Command } from 'commander';
import { errorText } from '../../base/log.ts';
import { consultBroker, requireMembership } from '../../clusterset/explain/consult.ts';
import type { ClusterFacts } from '../../clusterset/explain/predict.ts';
import { conditionIn, previewChange, type ServicePreview } from '../../clusterset/explain/preview-change.ts';
import { homeFacts, readSetState } from '../../clusterset/explain/set-state.ts';
import { clusterType } from '../../clusterset/kinds/cluster.ts';
import {
  exportToAnnotation,
  isSealed,
  type ServiceExport,
  sealAnnotation,
  serviceExportType,
} from '../../clusterset/kinds/service-export.ts';
import { sealingSecretName } from '../../clusterset/membership/membership.ts';
import { exportedReasons, isAboutLimit, serviceNameProblem } from '../../clusterset/rules/export-conditions.ts';
import { readExportRequest } from '../../clusterset/rules/export-request.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply, install, mergeInto } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { isForbidden } from '../../kube/objects/api-error.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { sealingNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { CommandError, notFoundError, refusedError, usageError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, parseTimeout, type WaitFlags, waitUntil } from '../wait.ts';
import {
  addHomeOptions,
  type CliDeps,
  type ClusterSetDeps,
  type HomeFlags,
  parseServiceRef,
  withHome,
} from '../with-home.ts';
import { completeExport } from './plan-file.ts';

interface ExportFlags extends HomeFlags, WaitFlags {
  readonly to?: string[];
  readonly seal?: boolean;
  readonly allowSystem?: boolean;
  readonly dryRun?: boolean;
}

export function addExportCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('export')
    .description(verbs.export)
    .argument('<namespace/name>', 'the Service; it may be created later')
    .option(
      '--to <clusters...>',
      'only these clusters import it; all removes the limit (default: unchanged, initially all)',
    )
    .option('--seal', 'at the broker only the clusters that import it can read it')
    .option('--no-seal', 'at the broker all members can read it again')
    .option('--allow-system', 'also from kube-system and default')
    .option('--dry-run', 'say what it would do, and change nothing')
    .addHelpText(
      'after',
      `
Examples:
  portolan export shop/checkout --wait
  portolan export shop/checkout --to west,north
  portolan export shop/checkout --to all
  portolan export shop/ledger --to west --seal --wait
  portolan export shop/checkout --dry-run`,
    );
  addWaitOptions(addHomeOptions(command), 'the clusterset has it').action(async (ref: string, flags: ExportFlags) => {
    const timeoutMs = parseTimeout(flags.timeout);
    await withHome(deps, flags, async ({ client: home, defaultNamespace }) => {
      const service = parseServiceRef(ref, defaultNamespace);
      refuseSystem(service.namespace, flags.allowSystem === true);
      if (flags.dryRun && flags.wait) throw usageError('--wait: with --dry-run there is nothing to wait for');
      const request = { home, ...service, to: parseTo(flags.to), seal: flags.seal, isDryRun: flags.dryRun };
      for await (const line of exportService(deps, request)) deps.print(line);
      if (flags.wait) deps.print(await waitForExport(deps, { ...request, timeoutMs }));
    });
  });
}

function parseTo(texts: readonly string[] | undefined): ExportRequest['to'] {
  const ids = texts?.flatMap((text) => text.split(',')).filter((id) => id !== '');
  if (ids?.includes('all') !== true) return ids;
  if (ids.length === 1) return 'all';
  throw usageError(`--to ${ids.join(',')}: write all alone, or the clusters that may import it`);
}

const systemNamespaces = ['kube-system', 'default'];

export function refuseSystem(namespace: string, isAllowed: boolean): void {
  if (isAllowed || !systemNamespaces.includes(namespace)) return;
  throw refusedError(
    `namespace ${namespace}: its services are every cluster's own and the same name means another thing in each; give --allow-system if you mean it`,
  );
}

export interface ExportRequest {
  readonly home: Client;
  readonly namespace: string;
  readonly name: string;
  /** Ids of clusters, or `all` to lift an earlier limit; what is limited already stays so when absent. */
  readonly to?: readonly string[] | 'all';
  /** Unchanged if absent. */
  readonly seal?: boolean | undefined;
  /** Everything is checked, and nothing is written. */
  readonly isDryRun?: boolean | undefined;
}

/** Lines to print; problems are reported before anything is written. */
export async function* exportService(deps: CliDeps, request: ExportRequest): AsyncGenerator<string> {
  const { home, namespace, name } = request;
  const key = `${namespace}/${name}`;
  const problem = serviceNameProblem(name);
  if (problem !== undefined) throw usageError(`export ${key}: no Service can have that name: it ${problem}`);
  if ((await getOrUndefined<Namespace>(home, namespaceType, { name: namespace })) === undefined) {
    throw notFoundError(`export ${key}: there is no namespace ${namespace}`);
  }
  if (request.seal === true) await refuseUnsealable(home, key);
  const present = await getOrUndefined<ServiceExport>(home, serviceExportType, { namespace, name });
  const limit = present?.metadata.annotations?.[exportToAnnotation];
  const wanted = exportObject(request);
  const isLifted = request.to === 'all' && limit !== undefined;
  const missing = yield* warnings(deps, request, isLifted ? withoutLimit(wanted) : wanted);
  if (isLifted) {
    const { metadata } = withoutLimit(wanted);
    const options = { isDryRun: request.isDryRun === true };
    await home.patch(serviceExportType, { namespace, name }, { kind: 'merge', body: { metadata } }, options);
    const what = `${key} ${request.isDryRun ? 'would be' : 'is'} exported to all clusters, no longer only to ${limit || 'nobody'}`;
    return yield missing === undefined ? what : `${what}, once ${missing}`;
  }
  if (request.isDryRun) {
    const tried = await tryExport(home, { wanted, present });
    return yield missing === undefined ? tried : `${tried}, once ${missing}`;
  }
  const { object, outcome } = await install<ServiceExport>(home, { type: serviceExportType, object: wanted });
  const only = object.metadata.annotations?.[exportToAnnotation];
  if (missing !== undefined) {
    const already = outcome === 'unchanged' ? ' already' : '';
    return yield `${key}: the export is written${already}; nothing is exported until ${missing}`;
  }
  if (outcome !== 'unchanged') yield `${key} is exported${outcome === 'updated' ? ' anew' : ''}`;
  else if (only === undefined) yield `${key} is exported already`;
  else yield `${key} is exported already, only to ${only || 'nobody'}; --to all lifts that`;
}

/** An agent that knows nothing of seals would export it in the open. */
async function refuseUnsealable(home: Client, key: string): Promise<void> {
  const place = { namespace: sealingNamespace, name: sealingSecretName };
  if ((await getOrUndefined<Secret>(home, secretType, place)) !== undefined) return;
  throw refusedError(
    `export ${key} --seal: this cluster has no keys for sealed exports; its agent makes them once the clusterset allows sealed exports (portolan broker init --sealed-exports Allowed)`,
  );
}

/** The home itself says whether it would take the object. */
async function tryExport(
  home: Client,
  { wanted, present }: { readonly wanted: ServiceExport; readonly present: ServiceExport | undefined },
): Promise<string> {
  const { namespace, name } = wanted.metadata;
  const key = `${namespace}/${name}`;
  const options = { isDryRun: true };
  if (present === undefined) {
    await home.create(serviceExportType, wanted, options);
    return `${key} would be exported`;
  }
  const change = mergeInto<ServiceExport>(wanted);
  const { outcome } = await apply({
    client: home,
    type: serviceExportType,
    present,
    change,
    onConflict: 'retry',
    options,
  });
  return outcome === 'unchanged' ? `${key} is exported already` : `${key} would be exported anew`;
}

/** In a merge patch null takes away. */
function withoutLimit(wanted: ServiceExport): ServiceExport {
  const annotations = { ...wanted.metadata.annotations, [exportToAnnotation]: null as unknown as string };
  return { ...wanted, metadata: { ...wanted.metadata, annotations } };
}

function exportObject({ namespace, name, to, seal }: ExportRequest): ServiceExport {
  const wanted = {
    ...(to !== undefined && to !== 'all' ? { [exportToAnnotation]: to.join(',') } : {}),
    ...(seal === undefined ? {} : { [sealAnnotation]: String(seal) }),
  };
  const annotations = Object.keys(wanted).length > 0 ? { annotations: wanted } : {};
  return {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: serviceExportType.kind,
    metadata: { name, namespace, ...annotations },
  };
}

/** Yields lines for the user. Returns what is missing until the export works; undefined if nothing is, or nobody knows. */
async function* warnings(
  deps: CliDeps,
  { home, namespace, name, to }: ExportRequest,
  wanted: ServiceExport,
): AsyncGenerator<string, string | undefined> {
  const key = `${namespace}/${name}`;
  try {
    const complete = { home, nowMs: deps.world.clock.wallMs(), isNewNamespace: false };
    const next = await completeExport(wanted, complete);
    const add = (facts: ClusterFacts) => ({ ...facts, exports: new Map(facts.exports).set(key, next) });
    const { preview, unknown } = await previewHere(deps, {
      home,
      key,
      change: add,
      ids: to === 'all' ? [] : (to ?? []),
    });
    if (unknown.length > 0)
      throw notFoundError(
        `export ${key}: the clusterset has no cluster ${unknown.join(', ')}; portolan status lists its clusters`,
      );
    if (isSealed(next)) {
      yield 'note: what a sealed export changes for those it is for is not previewed';
      return await missingService(home, { namespace, name });
    }
    yield* changeWarnings(preview);
    const [ready, valid] = [conditionIn(preview.conditions, 'Ready'), conditionIn(preview.conditions, 'Valid')];
    if (ready?.status === 'True') return undefined;
    yield `warning: ${(valid?.status === 'True' ? ready : valid)?.message}`;
    if (valid?.status !== 'False') return undefined;
    return valid.reason === 'NoService' ? noService : 'it is valid';
  } catch (error) {
    if (error instanceof CommandError) throw error;
    // Exporting does not require the right to read the broker.
    yield `note: cannot preview the effect on other clusters: ${errorText(error)}`;
    return await missingService(home, { namespace, name });
  }
}

const noService = 'a Service of that name exists';

/** Says nothing to a user without the right to read Services. */
async function missingService(home: Client, place: { namespace: string; name: string }): Promise<string | undefined> {
  const found = getOrUndefined<Service>(home, serviceType, place).then((service) => service !== undefined);
  return (await found.catch(() => true)) ? undefined : noService;
}

export function* changeWarnings({ flip, conflicts, service }: ServicePreview): Generator<string> {
  if (flip !== undefined)
    yield `warning: the type of ${service} would flip from ${flip.from} to ${flip.to} in every cluster`;
  for (const { reason, field, winner, value } of conflicts) {
    yield `warning: ${reason}: ${field} differs between clusters; ${value} of cluster ${winner} is used`;
  }
}

export interface HereRequest {
  readonly home: Client;
  readonly key: string;
  readonly change: (facts: ClusterFacts) => ClusterFacts;
  /** Ids that should be members. */
  readonly ids: readonly string[];
}

/** Previews a change of one service in this cluster. */
export async function previewHere(
  deps: CliDeps,
  { home, key, change, ids }: HereRequest,
): Promise<{ preview: ServicePreview; unknown: string[] }> {
  const membership = await requireMembership(home);
  const run = async (broker: Client) => {
    const state = await readSetState({ home, broker, membership, clock: deps.world.clock, keys: [key] });
    const present = await homeFacts(home, {
      state,
      id: membership.clusterId,
      keys: [key],
      nowMs: deps.world.clock.wallMs(),
    });
    const { items } = await broker.list(clusterType, { namespace: membership.clusterset });
    const known = new Set(items.map(({ metadata }) => metadata.name));
    const unknown = ids.filter((id) => !known.has(id));
    return { preview: previewChange({ state, present, next: change(present) }, key), unknown };
  };
  return consultBroker({ world: deps.world, membership, run });
}

/**
 * Resolves with a line when the export is ready; throws when it has failed or time is up. The conditions of the export
 * suffice: a person who may not read the membership can wait too.
 */
export async function waitForExport(
  deps: CliDeps,
  { home, namespace, name, timeoutMs }: Omit<ExportRequest, 'to'> & { timeoutMs: number },
): Promise<string> {
  const key = `${namespace}/${name}`;
  const agent = await agentName(home);
  const look = async () => {
    const present = await getOrUndefined<ServiceExport>(home, serviceExportType, { namespace, name });
    const ready = conditionOf(present?.status?.conditions, 'Ready');
    const isCurrent =
      ready?.observedGeneration === undefined || ready.observedGeneration === present?.metadata.generation;
    if (ready === undefined || present === undefined || !isCurrent) return { waiting: `${agent} has not processed it` };
    if (ready.status === 'True' || exportedReasons.has(ready.reason)) {
      if (!isAboutLimit(ready, readExportRequest(present)))
        return { waiting: `${agent} has not published the change to the broker` };
      // No endpoint of it may be ready yet: that may take its time, and an export does not wait for it.
      return { done: `${key} is ${ready.status === 'True' ? `ready: ${ready.message}` : ready.message}` };
    }
    if (ready.reason === 'Failed') throw new Error(`export ${key} has failed: ${ready.message}`);
    const why = conditionOf(present.status?.conditions, 'Valid');
    return { waiting: why?.status === 'False' ? why.message : ready.message };
  };
  return waitUntil(deps, { what: `export ${key}`, timeoutMs, look });
}

/** For people. Throws if this cluster is known to be no member: no agent would ever process the export. */
async function agentName(home: Client): Promise<string> {
  try {
    return `the agent of cluster ${(await requireMembership(home)).clusterId}`;
  } catch (error) {
    if (error instanceof Error && isForbidden(error.cause)) return 'the agent of this cluster';
    throw error;
  }
}
