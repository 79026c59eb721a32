// `portolan plan`: what the exports, services and policies of a file would do, against the clusterset as it is now. Changes nothing; the exit code
// is for pipelines.

import type { Command } from 'commander';
import { inParallel } from '../../base/in-parallel.ts';
import { consultBroker, requireMembership } from '../../clusterset/explain/consult.ts';
import { olderMembers } from '../../clusterset/explain/older-members.ts';
import type { ClusterFacts } from '../../clusterset/explain/predict.ts';
import { conditionIn, previewChanges, type ServicePreview } from '../../clusterset/explain/preview-change.ts';
import type { ImportPreview } from '../../clusterset/explain/preview-imports.ts';
import { byKey, fewKeysMax, homeFacts, listAll, readSetState } from '../../clusterset/explain/set-state.ts';
import { serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { exportedReasons } from '../../clusterset/rules/export-conditions.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import type { PairReach } from '../../clusterset/rules/networks/pairs.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { exitCodes, notFoundError } from '../exit-codes.ts';
import { readPairs } from '../pairs.ts';
import { formatCount, formatOutput, formatTable, type OutputFormat, outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import { addHomeOptions, type ClusterSetDeps, type HomeFlags, withHome } from '../with-home.ts';
import { completeExport, completeService, type PlanRequest, readPlanFile } from './plan-file.ts';
import { formatImports, planImports } from './plan-imports.ts';
import { type PolicyPlan, planPolicies } from './plan-policies.ts';

interface PlanFlags extends HomeFlags {
  readonly file: string;
  readonly output: string;
}

/** Exit codes of the command. 1 is an error, as everywhere. */
const planExit = { fine: 0, conflict: exitCodes.wouldConflict, notExported: exitCodes.notReady } as const;
const worstFirst: readonly number[] = [planExit.notExported, planExit.conflict];

export function addPlanCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('plan')
    .description(verbs.plan)
    .requiredOption(
      '-f, --file <file>',
      'YAML with ServiceExports, Services and policies of exports and imports; - reads standard input',
    )
    .option(...outputOption)
    .addHelpText(
      'after',
      `
Exit code 0 if all exports are valid and without conflict, 9 if clusters would disagree, 7 if an export would not be part of
the import, or if a ServiceImportPolicy asks for something that would not be done. Services that are neither exported here nor by the file are ignored. Examples:
  portolan plan -f exports.yaml
  kustomize build . | portolan plan -f - -o json`,
    );
  addHomeOptions(command).action(async (flags: PlanFlags) => {
    const format = parseOutput(flags.output);
    const plan = await withHome(deps, flags, async ({ client: home, defaultNamespace }) => {
      const objects = await readPlanFile(deps.host, flags.file, defaultNamespace);
      const membership = await requireMembership(home);
      const run = (broker: Client) => planExports(deps, { home, broker, membership, objects });
      return consultBroker({ world: deps.world, membership, run });
    });
    for (const line of formatPlan(plan, format)) deps.print(line);
    deps.setExitCode(plan.exitCode);
  });
}

export interface ExportPlan {
  readonly cluster: string;
  readonly clusterset: string;
  readonly exports: readonly ServicePreview[];
  /** Imports of this cluster that the ServiceImportPolicies of the file would change. */
  readonly imports: readonly ImportPreview[];
  /** Keys of the file's Services that are not exported and would not be. */
  readonly unexported: readonly string[];
  readonly ignored: readonly string[];
  /** How this cluster reaches the others; none where all share one network. */
  readonly pairs: readonly PairReach[];
  readonly exitCode: number;
}

export async function planExports(deps: Pick<ClusterSetDeps, 'world'>, request: PlanRequest): Promise<ExportPlan> {
  const { home, broker, membership, objects } = request;
  const policies = await planPolicies(home, objects, membership.clusterId);
  const exported = await exportedAmong(home, [...objects.services.keys()]);
  const keys = [...new Set([...objects.exports.keys(), ...policies.made.keys(), ...policies.gone, ...exported])].sort();
  const looked = new Set(keys);
  const state = await readSetState({ home, broker, membership, clock: deps.world.clock, keys });
  const present = await homeFacts(home, { state, id: membership.clusterId, keys, nowMs: deps.world.clock.wallMs() });
  const next = await applied(deps, { ...request, policies }, present);
  const exports = previewChanges({ state, present, next }, keys);
  const imports = await planImports(deps, request);
  return {
    cluster: membership.clusterId,
    clusterset: membership.clusterset,
    exports,
    imports,
    unexported: [...objects.services.keys()].filter((key) => !looked.has(key)),
    ignored: objects.ignored,
    pairs: await readPairs(home, { self: membership.clusterId, clock: deps.world.clock, older: olderMembers(state) }),
    exitCode: worstFirst.find((code) => codesOf({ exports, imports }).includes(code)) ?? planExit.fine,
  };
}

async function exportedAmong(home: Client, keys: readonly string[]): Promise<string[]> {
  if (keys.length > fewKeysMax) {
    const all = byKey(await listAll(home, serviceExportType));
    return keys.filter((key) => all.has(key));
  }
  const exported: string[] = [];
  for (const key of keys) {
    if ((await getOrUndefined(home, serviceExportType, parseServiceKey(key))) !== undefined) exported.push(key);
  }
  return exported;
}

/** To one home. */
const requests = { atOnceMax: 16 };

/** The home as it would be with the file applied. */
async function applied(
  deps: Pick<ClusterSetDeps, 'world'>,
  { home, objects, policies }: PlanRequest & { readonly policies: PolicyPlan },
  now: ClusterFacts,
): Promise<ClusterFacts> {
  const namespaces = new Set([...now.namespaces, ...objects.namespaces.keys()]);
  const exports = new Map(now.exports);
  const services = new Map(now.services);
  const completeFor = (key: string) => {
    const { namespace } = parseServiceKey(key);
    if (!namespaces.has(namespace)) {
      throw notFoundError(`export ${key}: there is no namespace ${namespace}; make it, or put it into the file`);
    }
    const isNewNamespace = !now.namespaces.has(namespace);
    return { home, nowMs: deps.world.clock.wallMs(), isNewNamespace };
  };
  await inParallel(new Map([...policies.made, ...objects.exports]), requests, async ([key, wanted]) => {
    const isThere = now.exports.has(key);
    exports.set(key, await completeExport(wanted, { ...completeFor(key), isThere }));
  });
  for (const key of policies.gone) exports.delete(key);
  await inParallel(objects.services, requests, async ([key, service]) => {
    if (!exports.has(key)) return;
    const isThere = now.services.has(key);
    services.set(key, await completeService(service, { ...completeFor(key), isThere }));
  });
  return { ...now, namespaces, exports, services };
}

function codesOf({ exports, imports }: Pick<ExportPlan, 'exports' | 'imports'>): number[] {
  return [
    ...exports.map(exitCodeOf),
    ...imports.map(({ isRefused }) => (isRefused ? planExit.notExported : planExit.fine)),
  ];
}

function exitCodeOf({ conditions, conflicts }: ServicePreview): number {
  // No longer exported, because that is what the file asks for.
  if (conditions === undefined) return planExit.fine;
  if (!exportedReasons.has(conditionIn(conditions, 'Ready')?.reason ?? '')) return planExit.notExported;
  return conflicts.length > 0 ? planExit.conflict : planExit.fine;
}

function formatPlan(plan: ExportPlan, format: OutputFormat): readonly string[] {
  const names = plan.exports.map(({ service }) => service);
  return formatOutput(format, { value: plan, names, text: () => planText(plan) });
}

function planText(plan: ExportPlan): string[] {
  const ways = new Map(plan.pairs.map(({ cluster, text }) => [cluster, text]));
  const lines = plan.exports.flatMap((one) => [...formatPreview(one), ...waysOf(one, ways), '']);
  lines.push(...formatImports(plan.imports));
  for (const key of plan.unexported) lines.push(`not exported, so no other cluster would notice: Service ${key}`);
  for (const one of plan.ignored) lines.push(`not looked at: ${one}`);
  const count = (code: number) => plan.exports.filter((one) => exitCodeOf(one) === code).length;
  lines.push(
    `${formatCount(plan.exports.length, 'export')} in cluster ${plan.cluster} of clusterset ${plan.clusterset}: ` +
      `${count(planExit.fine)} fine, ${count(planExit.conflict)} in conflict, ${count(planExit.notExported)} not exported; ` +
      `${plan.imports.length === 0 ? '' : `${formatCount(plan.imports.length, 'import')} would change; `}nothing was changed`,
  );
  return lines;
}

/** By which way connections from here would go; nothing where all clusters share one network. */
function waysOf({ clusters }: ServicePreview, ways: ReadonlyMap<string, string>): string[] {
  return clusters.flatMap((cluster) => {
    const way = ways.get(cluster);
    return way === undefined ? [] : [`  from here, ${cluster} is reached ${way}`];
  });
}

function formatPreview(one: ServicePreview): string[] {
  const { service, conditions = [], clusters, changes, elsewhere, flip } = one;
  const rows = conditions.map(({ type, status, reason, message }) => [`  ${type}`, status, reason, message]);
  const lines =
    one.conditions === undefined
      ? [`${service} would no longer be exported: no policy would select it`]
      : [`${service} would have`, ...formatTable(['  CONDITION', 'STATUS', 'REASON', 'MESSAGE'], rows)];
  lines.push(
    `  import: ${one.import === undefined ? 'none' : `${formatSpec(one.import)}, from ${clusters.join(', ')}`}`,
  );
  for (const change of changes) lines.push(`    ${change}`);
  if (flip !== undefined) lines.push(`  warning: the type would flip from ${flip.from} to ${flip.to} in every cluster`);
  for (const { cluster, before, after } of elsewhere) {
    for (const condition of after) {
      const was = before.find(({ type }) => type === condition.type);
      if (was?.status === condition.status && was.reason === condition.reason) continue;
      const what = `${condition.type} ${was?.status}/${was?.reason} would become ${condition.status}/${condition.reason}`;
      lines.push(`  in cluster ${cluster}: ${what}`);
    }
  }
  return lines;
}

function formatSpec(spec: NonNullable<ServicePreview['import']>): string {
  const ports = (spec.ports ?? []).map(
    ({ name, port, protocol }) => `${name === undefined ? '' : `${name} `}${port}/${protocol}`,
  );
  return `${spec.type}, ports ${ports.join(', ') || 'none'}`;
}
