// `portolan explain`: one service field by field: what each cluster says, who won, why, and what would change if a cluster
// left.

import type { Command } from 'commander';
import { consultBroker, requireMembership } from '../../clusterset/explain/consult.ts';
import { type ClusterFacts, foresee } from '../../clusterset/explain/foresee.ts';
import { brokerFacts, readSetState, type SetState } from '../../clusterset/explain/set-state.ts';
import type { ServiceShard } from '../../clusterset/kinds/service-shard.ts';
import { describeLease, type LeaseMemory, whyNotTrusted } from '../../clusterset/rules/leases/lease-memory.ts';
import { explainMerge, type MergeExplanation } from '../../clusterset/rules/merge/explain-merge.ts';
import { readShard, recordProblem } from '../../clusterset/rules/shard-record.ts';
import { CommandError, exitCodes, notFoundError } from '../exit-codes.ts';
import { addExplainConnectionCommand } from '../external/explain-connection.ts';
import { formatOutput, formatTable, type OutputFormat, outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import { addHomeOptions, type ClusterSetDeps, type HomeFlags, parseServiceRef, withHome } from '../with-home.ts';
import { explainAtHome, formatHomeExplanation, type HomeExplanation } from './explain-home.ts';

interface ExplainFlags extends HomeFlags {
  readonly output: string;
}

export function addExplainCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('explain')
    .description(verbs.explain)
    .argument('<namespace/name>', 'a service of the clusterset')
    .option(...outputOption)
    .addHelpText(
      'after',
      `
Examples:
  portolan explain shop/checkout
  portolan explain shop/checkout -o json | jq .conflicts`,
    );
  addExplainConnectionCommand(command, deps);
  addHomeOptions(command).action(async (ref: string, flags: ExplainFlags) => {
    const format = parseOutput(flags.output);
    const explanation = await withHome(deps, flags, async ({ client: home, defaultNamespace }) => {
      const { namespace, name } = parseServiceRef(ref, defaultNamespace);
      const key = `${namespace}/${name}`;
      const membership = await requireMembership(home);
      return consultBroker<ServiceExplanation | HomeExplanation>({
        world: deps.world,
        membership,
        run: async (broker) => explainService(await readSetState({ home, broker, membership, keys: [key] }), key),
        away: (why) => explainAtHome({ home, key, why }),
      });
    });
    if ('brokerProblem' in explanation) deps.setExitCode(exitCodes.unreachable);
    const lines =
      'brokerProblem' in explanation
        ? formatHomeExplanation(explanation, format)
        : formatExplanation(explanation, format);
    for (const line of lines) deps.print(line);
  });
}

export interface ServiceExplanation extends MergeExplanation {
  readonly service: string;
  readonly type: string;
  /** Why the decider decides what cannot be combined. */
  readonly why: string;
  readonly ports: string;
  /** What a name that leads to endpoints cannot express, for the reader. */
  readonly nameNote: string | undefined;
  readonly standings: readonly ClusterStanding[];
}

export interface ClusterStanding {
  readonly cluster: string;
  readonly lease: 'alive' | 'stale';
  /** Since when it is stale, until when it is held down; absent if it lives and has not been away lately. */
  readonly memory: LeaseMemory | undefined;
  /** Whether its export takes part in the merge. */
  readonly isCounted: boolean;
  /** Set if its record cannot be counted, whatever its lease: why. */
  readonly problem: string | undefined;
  readonly readyEndpoints: number | undefined;
  readonly exportTo: readonly string[] | undefined;
  /** Whether new connections go elsewhere. */
  readonly isDraining: boolean;
}

export function explainService(state: SetState, key: string): ServiceExplanation {
  const facts = brokerFacts(state);
  const foreseen = foresee(facts, state.policy);
  const counted = foreseen.counted(key);
  const memories = new Map(state.members.map(({ id, memory }) => [id, memory]));
  const shards = counted.map(({ cluster, record }) => readShard(record, cluster));
  const explanation = explainMerge({ shards, ports: state.policy.ports });
  if (explanation === undefined) throw notExported(state, key);
  return {
    service: key,
    type: foreseen.merge(key)?.type ?? '',
    why: whyDecides(explanation),
    ports: state.policy.ports,
    nameNote: nameNote(state, explanation),
    ...explanation,
    standings: facts.flatMap((one) =>
      standingOf(one, key, { counted: new Set(counted.map(({ cluster }) => cluster)), memory: memories.get(one.id) }),
    ),
  };
}

function notExported({ members }: SetState, key: string): Error {
  const withdrawn = members.filter(({ shards, verdict }) => shards.has(key) && verdict === 'stale');
  const why = withdrawn.map(({ id, memory }) => `cluster ${id} exports it, and ${whyNotTrusted(memory)}`);
  for (const { id, shards } of members) {
    const record = shards.get(key);
    const problem = record && recordProblem(record);
    if (problem !== undefined) why.push(`cluster ${id} exports it, and its record ${problem}`);
  }
  const unread = members.filter(({ problem }) => problem !== undefined).map(({ id }) => `cluster ${id} cannot be read`);
  if (why.length > 0) {
    return new CommandError('notReady', `service ${key} is withdrawn: ${[...why, ...unread].join('; ')}`);
  }
  const but = unread.length === 0 ? '' : ` (but ${unread.join(', ')})`;
  return notFoundError(`service ${key}: no cluster of the clusterset exports it${but}`);
}

interface StandingFacts {
  readonly counted: ReadonlySet<string>;
  readonly memory: LeaseMemory | undefined;
}

function standingOf(facts: ClusterFacts, key: string, { counted, memory }: StandingFacts): ClusterStanding[] {
  const record: ServiceShard | undefined = facts.left?.get(key);
  if (record === undefined) return [];
  const { readyEndpoints, exportTo } = record.spec;
  const isCounted = counted.has(facts.id);
  const problem = recordProblem(record);
  const isDraining = facts.isDraining === true || record.spec.draining === true;
  return [
    { cluster: facts.id, lease: facts.verdict, memory, isCounted, problem, readyEndpoints, exportTo, isDraining },
  ];
}

// Without a clusterset IP the name leads to endpoints, and each listens on the port that its own cluster has.
function nameNote({ policy }: SetState, { clusters }: MergeExplanation): string | undefined {
  if (policy.clusterSetIps !== 'none') return undefined;
  const serving = clusters.filter(({ isPartOfImport }) => isPartOfImport);
  const isUneven = new Set(serving.map(({ serves }) => serves.join())).size > 1;
  const but = isUneven ? ' Clusters serve different ports: an address may be of one that lacks the port you want.' : '';
  return `A and AAAA of this name are endpoints and do not say their ports: ask for SRV of the port you want.${but}`;
}

function whyDecides({ clusters, decider }: MergeExplanation): string {
  const [first, second] = clusters;
  if (second === undefined) return 'nobody else exports it';
  const isTie = Date.parse(first?.exportedAt ?? '') === Date.parse(second.exportedAt);
  return isTie
    ? `exported at ${first?.exportedAt} like that of ${second.cluster}, and ${decider} is first by cluster id`
    : `the oldest export, of ${first?.exportedAt}`;
}

export function formatExplanation(explanation: ServiceExplanation, format: OutputFormat): readonly string[] {
  const names = explanation.standings.map(({ cluster }) => cluster);
  return formatOutput(format, { value: explanation, names, text: () => explanationText(explanation) });
}

function explanationText(explanation: ServiceExplanation): string[] {
  const { service, type, decider, why, fields, conflicts, ifLeft, ports } = explanation;
  const lines = [`${service}: ${type}, decided by cluster ${decider} (${why}); ports by ${ports}`, ''];
  lines.push(...clusterTable(explanation), '');
  for (const { field, value, winner, says } of fields) {
    const isAgreed = says.every(({ agrees }) => agrees);
    lines.push(`${field}: ${value}${isAgreed ? ' (all agree)' : `, decided by ${winner}`}`);
    if (!isAgreed) for (const { cluster, value: said } of says) lines.push(`  ${cluster} says ${said}`);
  }
  if (explanation.nameNote !== undefined) lines.push('', explanation.nameNote);
  lines.push('', conflicts.length === 0 ? 'no conflicts' : 'conflicts:');
  for (const one of conflicts) {
    lines.push(
      `  ${one.reason}: ${one.field} is ${one.value} of ${one.winner}, ${one.why}; ${one.disagreeing.length} of ${one.exporterCount} disagree; if ${one.winner} left, ${one.ifWinnerLeft}`,
    );
  }
  lines.push('', 'if a cluster left:');
  for (const { cluster, changes } of ifLeft) {
    lines.push(`  ${cluster}: ${changes.length === 0 ? 'nothing else would change' : changes.join('; ')}`);
  }
  return lines;
}

function clusterTable({ clusters, standings }: ServiceExplanation): string[] {
  const rows = standings.map(({ cluster, memory, isCounted, problem, readyEndpoints, exportTo, isDraining }) => {
    const merged = clusters.find((one) => one.cluster === cluster);
    return [
      cluster,
      merged?.exportedAt ?? '-',
      describeLease(memory),
      merged?.isPartOfImport
        ? isDraining
          ? 'yes, draining'
          : 'yes'
        : isCounted
          ? 'no, another type'
          : `no, ${whyOut(problem, memory)}`,
      merged?.serves.map((name) => name || '(unnamed)').join(',') || '-',
      readyEndpoints === undefined ? '?' : String(readyEndpoints),
      exportTo === undefined ? 'all' : exportTo.join(',') || 'nobody else',
    ];
  });
  return formatTable(['CLUSTER', 'EXPORTED', 'LEASE', 'PART OF IMPORT', 'SERVES', 'READY', 'FOR'], rows);
}

function whyOut(problem: string | undefined, memory: LeaseMemory | undefined): string {
  if (problem !== undefined) return `its record ${problem}`;
  return memory?.heldUntil === undefined ? 'its lease has run out' : 'held down';
}
