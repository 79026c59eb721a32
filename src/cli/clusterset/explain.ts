// `portolan explain`: one service field by field: what each cluster says, who won, why, and what would change if a cluster
// left.

import type { Command } from 'commander';
import { consultBroker, requireMembership } from '../../clusterset/explain/consult.ts';
import { explainService, NotExported, type ServiceExplanation } from '../../clusterset/explain/explain-service.ts';
import { readSetState, type SetState } from '../../clusterset/explain/set-state.ts';
import { describeLease, type LeaseMemory } from '../../clusterset/rules/leases/lease-memory.ts';
import { accessOf } from '../access-at-home.ts';
import { CommandError, exitCodes, notFoundError } from '../exit-codes.ts';
import { addExplainConnectionCommand } from '../external/explain-connection.ts';
import { didYouMean, findService, knownServices } from '../suggest.ts';
import { formatOutput, formatTable, type OutputFormat, outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import { addHomeOptions, type ClusterSetDeps, type HomeFlags, withHome } from '../with-home.ts';
import { seenFromHere, serviceBehind } from './explain-here.ts';
import { explainAtHome, formatHomeExplanation, type HomeExplanation } from './explain-home.ts';

interface ExplainFlags extends HomeFlags {
  readonly output: string;
}

export function addExplainCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('explain')
    .description(verbs.explain)
    .argument('<namespace/name>', 'a service of the clusterset; the namespace may be left out if one has the name')
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
      const { namespace, name } = await findService(home, ref, defaultNamespace);
      const key = await serviceBehind(home, `${namespace}/${name}`);
      const membership = await requireMembership(home);
      return consultBroker<ServiceExplanation | HomeExplanation>({
        world: deps.world,
        membership,
        run: async (broker) => {
          const state = await readSetState({ home, broker, membership, clock: deps.world.clock, keys: [key] });
          return {
            ...explain(state, key, await knownServices(home)),
            ...(await seenFromHere(home, key, state.policy.choice)),
            ...(await accessOf(home, { key, clock: deps.world.clock })),
          };
        },
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

function explain(state: SetState, key: string, known: readonly string[]): ServiceExplanation {
  try {
    return explainService(state, key);
  } catch (error) {
    if (!(error instanceof NotExported)) throw error;
    if (error.kind === 'withdrawn') throw new CommandError('notReady', error.message);
    throw notFoundError(`${error.message}${didYouMean(key, known)}`);
  }
}

function formatExplanation(explanation: ServiceExplanation, format: OutputFormat): readonly string[] {
  const names = explanation.standings.map(({ cluster }) => cluster);
  return formatOutput(format, { value: explanation, names, text: () => explanationText(explanation) });
}

function explanationText(explanation: ServiceExplanation): string[] {
  const { service, type, decider, why, fields, conflicts, ifLeft, ports } = explanation;
  const lines = [`${service}: ${type}, decided by cluster ${decider} (${why}); ports by ${ports}`, ''];
  lines.push(...clusterTable(explanation), '');
  if (explanation.importedAs !== undefined) lines.push(`imported here as ${explanation.importedAs}`, '');
  if (explanation.reached !== undefined) lines.push(`reached from here: ${explanation.reached}`, '');
  if (explanation.unanswered !== undefined) lines.push(`left here: ${explanation.unanswered}`, '');
  if (explanation.routed !== undefined) lines.push(`new connections from here: ${explanation.routed}`, '');
  const { precedence = [] } = explanation;
  if (precedence.length > 0) lines.push('who decides that here:', ...precedence.map((line) => `  ${line}`), '');
  if (explanation.access !== undefined) lines.push(...explanation.access, '');
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
  const rows = standings.map((member) => {
    const { cluster, memory, homeAwaySince, isCounted, problem, readyEndpoints, exportTo, isDraining } = member;
    const merged = clusters.find((one) => one.cluster === cluster);
    return [
      cluster,
      merged?.exportedAt ?? '-',
      memory?.verdict !== 'stale' && homeAwaySince !== undefined
        ? `home away since ${homeAwaySince}`
        : describeLease(memory),
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
  if (memory?.homeAwaySince !== undefined) return 'its home is away';
  return memory?.heldUntil === undefined ? 'its lease has run out' : 'held down';
}
