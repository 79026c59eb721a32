// `portolan status`: the clusterset at a glance: its clusters and their leases, its services and their conflicts, and how
// far this cluster is behind what lies at the broker.

import type { Command } from 'commander';
import { sleep } from '../../base/world.ts';
import { consultBroker, findMembership, requireMembership } from '../../clusterset/explain/consult.ts';
import { allChecks } from '../../doctor/checks/index.ts';
import type { Severity } from '../../doctor/codes.ts';
import { diagnose } from '../../doctor/diagnosis.ts';
import type { Client } from '../../kube/client/client.ts';
import { whileAnswering } from '../../kube/client/while-answering.ts';
import { ApiError } from '../../kube/objects/api-error.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { describeError, exitCodes, exitKindOf } from '../exit-codes.ts';
import { readOutside } from '../outside.ts';
import { formatOutput, outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import {
  addHomesOptions,
  type ClusterSetDeps,
  findHomeOf,
  type HomeFlags,
  type HomesFlags,
  homesOf,
  withHome,
} from '../with-home.ts';
import { readCluster } from './read.ts';
import { readBrokerStatus } from './status-broker.ts';
import { readHomeStatus } from './status-home.ts';
import { readStatus } from './status-read.ts';
import { type JudgedStatus, type Status, statusText } from './status-report.ts';

interface StatusFlags extends HomesFlags {
  readonly output: string;
  readonly watch?: boolean;
}

export function addStatusCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('status')
    .description(verbs.status)
    .option(...outputOption)
    .option('-w, --watch', 'show it again every two seconds, until Ctrl-C')
    .addHelpText(
      'after',
      `
LEASE shows the state that this cluster's agent has determined: alive; stale since it expired; or held down, after repeated
expiries. While the broker is unreachable this shows the last known state.
The checks of portolan doctor run too, but no connections are tried; problems and warnings carry their code and the next step.
Exit code 0 if all is well or there are only warnings, 7 for problems, 8 if something cannot be read, 6 if the broker does not
answer.
Examples:
  portolan status
  portolan status -o wide
  portolan status -o json | jq .services
  portolan status --kubeconfig broker.kubeconfig east.kubeconfig
At a broker it shows all members. Several homes are a list in JSON.`,
    );
  addHomesOptions(command).action(async (flags: StatusFlags) => {
    if (!flags.watch) return show(deps, flags);
    for (;;) {
      // A home that is away now may be back the next time.
      await show(deps, flags, { isRepeated: true });
      await sleep(deps.world.timers, watchMs);
    }
  });
}

const watchMs = 2000;

async function show(deps: ClusterSetDeps, flags: StatusFlags, { isRepeated = false } = {}): Promise<void> {
  const format = parseOutput(flags.output);
  const homes = homesOf(flags);
  const keepsGoing = isRepeated || homes.length > 1;
  const reports = await Promise.all(homes.map((home) => reportOf(deps, home, keepsGoing, format === 'wide')));
  const values = reports.flatMap(({ value }) => value);
  const names = reports.flatMap((one) =>
    one.statuses.flatMap(({ services }) => services.map(({ service }) => service)),
  );
  const value = values.length === 1 ? values[0] : values;
  const text = () => reports.flatMap(({ lines }, index) => (index === 0 ? lines : ['', ...lines]));
  if (isRepeated) {
    deps.clearScreen?.();
    if (format === 'text' || format === 'wide')
      deps.print(`${formatTime(deps.world.clock.wallMs())}, again every 2 s\n`);
  }
  for (const line of formatOutput(format, { value, names, text })) deps.print(line);
  deps.setExitCode(worstOf(reports.map(({ exitCode }) => exitCode)));
}

interface HomeReport {
  readonly statuses: readonly JudgedStatus[];
  /** For programs. */
  readonly value: readonly unknown[];
  readonly lines: readonly string[];
  readonly exitCode: number;
}

/** One of several homes that cannot be read does not hide the others. */
async function reportOf(
  deps: ClusterSetDeps,
  home: HomeFlags,
  keepsGoing: boolean,
  isWide: boolean,
): Promise<HomeReport> {
  try {
    const statuses = await judgedStatuses(deps, home);
    const text = (one: JudgedStatus) => statusText(one, { isWide });
    const lines = statuses.flatMap((one, index) => (index === 0 ? text(one) : ['', ...text(one)]));
    return { statuses, value: statuses, lines, exitCode: worstOf(statuses.map(statusExit)) };
  } catch (error) {
    if (!keepsGoing) throw error;
    const name = [home.kubeconfig, home.context].filter((text) => text !== undefined).join(', context ');
    const problem = `${name === '' ? '' : `${name}: `}${describeError(error)}`;
    const exitCode = exitCodes[exitKindOf(error)];
    return { statuses: [], value: [{ home: name, problem }], lines: [`problem: ${problem}`], exitCode };
  }
}

async function judgedStatuses(deps: ClusterSetDeps, flags: HomeFlags): Promise<JudgedStatus[]> {
  const { world } = deps;
  const access = await findHomeOf(deps, flags);
  // The home is asked for its state first: if it does not answer, that error is the whole answer.
  const statuses = await statusesOf(deps, flags);
  const { findings, skipped } = diagnose([await readCluster({ world, access, timeoutMs: checksMsMax })], allChecks);
  const lines = (severity: Severity) =>
    findings
      .filter((one) => one.severity === severity)
      .map(
        ({ code, subject, message, since, fix }) =>
          `${code} ${subject}: ${message}${since === undefined ? '' : `, since ${since}`}; next step: ${fix}`,
      );
  const shown = skipped.filter(({ isIdle }) => !isIdle);
  const unchecked = groupedReasons(shown);
  // A part on another machine cannot be asked through an embedded home; that is no gap in what is read here.
  const isIncomplete = shown.some(({ isUnasked }) => !isUnasked);
  // The checks are of the home, not of one of its clustersets.
  return statuses.map((status, index) =>
    index > 0
      ? { ...status, problems: [], warnings: [], unchecked: [], isIncomplete: false }
      : { ...status, problems: lines('error'), warnings: lines('warning'), unchecked, isIncomplete },
  );
}

/** For the first answer of a home. */
const greetingMs = 5_000;

/** Each reason once, with the checks that it keeps from running. */
export function groupedReasons(skipped: readonly { readonly code: string; readonly why: string }[]): string[] {
  const byReason = new Map<string, Set<string>>();
  for (const { code, why } of skipped) byReason.set(why, (byReason.get(why) ?? new Set()).add(code));
  return [...byReason].map(([why, codes]) => `${[...codes].join(', ')}: ${why}`);
}

/** For reading one home. */
const checksMsMax = 20_000;

/** At a member: its clusterset; at a broker: every clusterset it holds. */
function statusesOf(deps: ClusterSetDeps, flags: HomeFlags): Promise<Status[]> {
  const { world } = deps;
  return withHome(deps, flags, ({ client: home, server }) =>
    whileAnswering({ world, client: home }, () => read(home, server)),
  );

  async function read(home: Client, server: string): Promise<Status[]> {
    // Refused is an answer; a home that hangs is not waited for.
    const present = await findMembership(home, { timeoutMs: greetingMs }).catch((error: unknown) => {
      if (error instanceof ApiError && error.code < 500) return undefined;
      throw error;
    });
    if (present === undefined) {
      const sets = await readBrokerStatus(home, { server, clock: world.clock });
      if (sets.length > 0) return sets;
    }
    const membership = await requireMembership(home);
    const status = await consultBroker<Status>({
      world,
      membership,
      run: (broker) => readStatus(deps, { home, broker, membership }),
      away: (why) => readHomeStatus({ home, membership, why, clock: world.clock }),
    });
    return [{ ...status, outside: await readOutside(home, world.clock.wallMs()) }];
  }
}

/** Unreachable ranks before wrong, and wrong before incomplete. */
function worstOf(codes: readonly number[]): number {
  const order: readonly number[] = [exitCodes.unreachable, exitCodes.notReady, exitCodes.incomplete];
  return order.find((code) => codes.includes(code)) ?? codes.find((code) => code !== 0) ?? 0;
}

function statusExit(status: JudgedStatus): number {
  if (status.brokerProblem !== undefined) return exitCodes.unreachable;
  const { problems, stale, behind, unpublished, refused } = status;
  if ([problems, stale, behind, unpublished, refused].some((list) => list.length > 0)) return exitCodes.notReady;
  const isUnread = status.clusters.some(({ problem }) => problem !== undefined) || status.isIncomplete;
  return isUnread ? exitCodes.incomplete : 0;
}
