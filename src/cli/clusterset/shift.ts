// `portolan shift`: creates a TrafficShift in each importing cluster that is given, pauses, resumes or ends it, and shows how far it is.
// The agent of each cluster runs it: the command may end at any time.

import type { Command } from 'commander';
import { requireMembership } from '../../clusterset/explain/consult.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { type TrafficShift, type TrafficShiftSpec, trafficShiftType } from '../../clusterset/kinds/traffic-shift.ts';
import { describeRouting, readRouting, routingAnnotation } from '../../clusterset/rules/routing/routing.ts';
import { hasEnded } from '../../clusterset/rules/routing/shift-step.ts';
import { readSeconds, shiftDefaults, shiftProblem } from '../../clusterset/rules/routing/shifts.ts';
import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import { CommandError, exitCodes, notFoundError, usageError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, type Look, parseTimeout, type WaitFlags, waitUntil } from '../wait.ts';
import {
  addHomesOptions,
  type ClusterSetDeps,
  type HomeFlags,
  type HomesFlags,
  homesOf,
  parseServiceRef,
  withHome,
} from '../with-home.ts';

interface ShiftFlags extends HomesFlags, WaitFlags {
  readonly from?: string;
  readonly to?: string;
  readonly steps?: string;
  readonly every?: string;
  readonly maxWorse?: string;
  readonly minConnections?: string;
  readonly dryRun?: boolean;
  readonly pause?: boolean;
  readonly resume?: boolean;
  readonly abort?: boolean;
}

export function addShiftCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('shift')
    .description(verbs.shift)
    .argument('<namespace/name>', 'a service that the given clusters import')
    .option('--from <cluster>', 'the cluster that serves it now')
    .option('--to <cluster>', 'the cluster that takes over')
    .option('--steps <percents>', 'percents of what the old cluster would serve (default: 5,25,50,100)')
    .option('--every <time>', 'how long each step is held: 90s, 5m, 1h (default: 5m)')
    .option(
      '--max-worse <points>',
      `how much more may fail, in points of a hundred (default: ${shiftDefaults.maxWorse})`,
    )
    .option(
      '--min-connections <number>',
      `connections that a step needs to be judged; 0 goes by time alone (default: ${shiftDefaults.minConnections})`,
    )
    .option('--dry-run', 'print what would happen, and change nothing')
    .option('--pause', 'hold the step of a shift under way')
    .option('--resume', 'go on after a pause')
    .option('--abort', 'go back and end the shift')
    .addHelpText(
      'after',
      `
Creates a TrafficShift in the home of each importing cluster that --kubeconfig and --context name. The agent there runs it, over
the ServiceImportPolicy and without changing it, and goes back by itself when more connections fail than before. Without --from and
--to it shows the shift that is there. Examples:
  portolan shift shop/checkout --from east --to west --steps 5,25,50,100 --every 5m
  portolan shift shop/checkout --wait --timeout 3600
  portolan shift shop/checkout --abort`,
    );
  addWaitOptions(addHomesOptions(command), 'the shift has ended').action(async (ref: string, flags: ShiftFlags) => {
    const task = taskOf(flags);
    const timeoutMs = parseTimeout(flags.timeout);
    const homes = homesOf(flags);
    const phases = await inEach(deps, homes, (client, namespace) =>
      act(deps, client, parseServiceRef(ref, namespace), task),
    );
    if (flags.wait && !flags.dryRun)
      phases.push(
        ...(await inEach(deps, homes, (client, namespace) =>
          follow(deps, client, parseServiceRef(ref, namespace), timeoutMs),
        )),
      );
    if (phases.includes('RolledBack')) deps.setExitCode(exitCodes.notReady);
  });
}

type Task =
  | { readonly kind: 'show' }
  | { readonly kind: 'change'; readonly spec: Partial<TrafficShiftSpec> }
  | Creation;

interface Creation {
  readonly kind: 'create';
  readonly shape: Shape;
  readonly isDryRun: boolean;
}

type Shape = Omit<TrafficShiftSpec, 'service'>;
type Phase = string | undefined;

/** All of them at once where there is something to wait for; in their order otherwise. */
async function inEach(
  deps: ClusterSetDeps,
  homes: readonly HomeFlags[],
  run: (client: Client, namespace: string) => Promise<Phase>,
): Promise<Phase[]> {
  return Promise.all(homes.map((home) => withHome(deps, home, (open) => run(open.client, open.defaultNamespace))));
}

function taskOf(flags: ShiftFlags): Task {
  const asked = (['pause', 'resume', 'abort'] as const).filter((name) => flags[name]);
  const shaping = (['from', 'to', 'steps', 'every', 'maxWorse', 'minConnections'] as const).filter(
    (name) => flags[name] !== undefined,
  );
  if (asked.length > 1 || (asked.length === 1 && shaping.length > 0))
    throw usageError(`--${asked.join(' and --')}: give one of --pause, --resume and --abort, without other settings`);
  if (flags.pause) return { kind: 'change', spec: { paused: true } };
  if (flags.resume) return { kind: 'change', spec: { paused: false } };
  if (flags.abort) return { kind: 'change', spec: { abort: true } };
  if (shaping.length === 0 && !flags.dryRun) return { kind: 'show' };
  if (flags.from === undefined || flags.to === undefined) throw usageError('a new shift needs --from and --to');
  const { maxWorse, minConnections } = flags;
  const shape: Shape = {
    from: flags.from,
    to: flags.to,
    steps: (flags.steps ?? '5,25,50,100').split(',').map((text) => (text.trim() === '' ? Number.NaN : Number(text))),
    every: flags.every ?? '5m',
    ...(maxWorse === undefined ? {} : { maxWorse: numberOf('--max-worse', maxWorse) }),
    ...(minConnections === undefined ? {} : { minConnections: numberOf('--min-connections', minConnections) }),
  };
  const problem = shiftProblem({ service: 'any', ...shape });
  if (problem !== undefined) throw usageError(problem);
  return { kind: 'create', shape, isDryRun: flags.dryRun === true };
}

function numberOf(flag: string, text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw usageError(`${flag} ${JSON.stringify(text)}: want a number`);
  return value;
}

interface Ref {
  readonly namespace: string;
  readonly name: string;
}

async function act(deps: ClusterSetDeps, client: Client, service: Ref, task: Task): Promise<Phase> {
  if (task.kind === 'show') return show(deps, client, service);
  if (task.kind === 'create') return create(deps, client, service, task);
  const { clusterId } = await requireMembership(client);
  const shift = await shiftOf(client, service);
  const { metadata } = shift;
  await client.patch(trafficShiftType, metadata as Ref, { kind: 'merge', body: { spec: task.spec } });
  const verb = task.spec.abort ? 'goes back' : task.spec.paused ? 'holds its step' : 'goes on';
  deps.print(`${clusterId}: TrafficShift ${metadata.namespace}/${metadata.name} ${verb}`);
  return undefined;
}

async function show(deps: ClusterSetDeps, client: Client, service: Ref): Promise<Phase> {
  const { clusterId } = await requireMembership(client);
  const shift = await shiftOf(client, service);
  deps.print(`${clusterId}: ${lineOf(shift)}`);
  return shift.status?.phase;
}

/** The one that has begun, or that was made by this command. */
async function shiftOf(client: Client, service: Ref): Promise<TrafficShift> {
  const { items } = await client.list<TrafficShift>(trafficShiftType, { namespace: service.namespace });
  const all = (items ?? []).filter(({ spec }) => spec?.service === service.name);
  const running = all.find(({ status }) => status?.phase === 'Measuring' || status?.phase === 'Shifting');
  const found = running ?? all.find(({ metadata }) => metadata.name === service.name) ?? all[0];
  if (found === undefined)
    throw notFoundError(
      `shift ${service.namespace}/${service.name}: this cluster shifts no connections of it; begin with --from and --to`,
    );
  return found;
}

async function create(
  deps: ClusterSetDeps,
  client: Client,
  service: Ref,
  { shape, isDryRun }: Creation,
): Promise<undefined> {
  const { clusterId } = await requireMembership(client);
  const key = `${service.namespace}/${service.name}`;
  const imported = await getOrUndefined<ServiceImport>(client, serviceImportType, service);
  if (imported === undefined) throw notFoundError(`shift ${key}: cluster ${clusterId} does not import it`);
  const exporters = (imported.status?.clusters ?? []).map(({ cluster }) => cluster);
  const unknown = [shape.from, shape.to].filter((id) => !exporters.includes(id));
  if (unknown.length > 0)
    throw notFoundError(
      `shift ${key}: cluster ${clusterId} imports it from ${exporters.join(', ') || 'nobody'}, and not from ${unknown.join(' and ')}`,
    );
  const present = await getOrUndefined<TrafficShift>(client, trafficShiftType, service);
  const isOver = present?.status?.phase === 'RolledBack' || present?.status?.phase === 'Aborted';
  if (present !== undefined && !isOver)
    throw new CommandError(
      'wouldConflict',
      `shift ${key}: cluster ${clusterId} has one already: ${lineOf(present)}; end it with --abort, or delete the TrafficShift`,
    );
  if (isDryRun) {
    const now = describeRouting(readRouting(imported.metadata.annotations?.[routingAnnotation] ?? ''));
    for (const line of planLines(clusterId, shape, now)) deps.print(line);
    return undefined;
  }
  if (present !== undefined) await deleteIfPresent(client, trafficShiftType, present.metadata);
  const metadata = { namespace: service.namespace, name: service.name };
  await client.create<TrafficShift>(trafficShiftType, {
    apiVersion: apiVersionOf(trafficShiftType),
    kind: trafficShiftType.kind,
    metadata,
    spec: { service: service.name, ...shape },
  });
  deps.print(
    `${clusterId}: TrafficShift ${key} created: ${shape.steps.join(', ')} % of ${shape.from} to ${shape.to}, each for ${shape.every}`,
  );
  return undefined;
}

function planLines(clusterId: string, shape: Shape, now: string | undefined): string[] {
  const seconds = readSeconds(shape.every)!;
  const least = Math.min(60, seconds) + shape.steps.length * seconds;
  const { maxWorse = shiftDefaults.maxWorse, minConnections = shiftDefaults.minConnections } = shape;
  return [
    `${clusterId}: now ${now ?? 'as the clusterset has it'}`,
    `  measures for ${Math.min(60, seconds)} s what fails before`,
    ...shape.steps.map(
      (step) => `  ${step} % of the part of ${shape.from} goes to ${shape.to}, for ${shape.every} at least`,
    ),
    `  back to the policy if failed connections rise by more than ${maxWorse} points; waits for ${minConnections} connections a step`,
    `  done after ${least} s at the earliest; nothing was changed`,
  ];
}

function lineOf({ spec, status }: TrafficShift): string {
  const { phase = 'not begun', step = 0, percent = 0, message } = status ?? {};
  const at = `${phase}, step ${step} of ${spec?.steps?.length ?? 0}, ${percent} % from ${spec?.from} to ${spec?.to}`;
  return message === undefined ? at : `${at}: ${message}`;
}

/** Prints a line for each step, and on a terminal what it waits for. */
async function follow(deps: ClusterSetDeps, client: Client, service: Ref, timeoutMs: number): Promise<Phase> {
  const { clusterId } = await requireMembership(client);
  let said = '';
  let phase: Phase;
  const look = async (): Promise<Look> => {
    const shift = await shiftOf(client, service);
    phase = shift.status?.phase;
    const step = `${phase ?? 'not begun'} ${shift.status?.percent ?? 0}`;
    if (step !== said && !hasEnded(shift.status ?? {})) deps.print(`${clusterId}: ${lineOf(shift)}`);
    said = step;
    if (hasEnded(shift.status ?? {})) return { done: `${clusterId}: ${lineOf(shift)}` };
    return { waiting: shift.status?.message ?? `the agent of cluster ${clusterId} has not begun` };
  };
  deps.print(await waitUntil(deps, { what: `shift ${service.namespace}/${service.name}`, timeoutMs, look }));
  return phase;
}
