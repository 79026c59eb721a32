// A TrafficShift as a machine: its state, what was seen since the last look, and what it does next. Pure; time comes in as seconds
// that were observed, so that those in which nobody looked do not count.
//
// It measures first what fails before it moves anything. A step is held until it is old enough and enough connections have gone to the
// new cluster. It goes back at once when more connections fail than before, by more than the bound and by more than chance, and when
// more nodes than the bound have left the new cluster.

import { addCounts, type ConnectionCounts, noConnections } from '../../../kube/objects/reports/connections.ts';
import type { ShiftPhase } from '../../kinds/traffic-shift.ts';

export interface ShiftPlan {
  readonly to: string;
  readonly steps: readonly number[];
  readonly everySeconds: number;
  readonly maxWorse: number;
  readonly minConnections: number;
  readonly isPaused: boolean;
  readonly isAborted: boolean;
}

export interface ShiftState {
  readonly phase: ShiftPhase;
  readonly step: number;
  readonly percent: number;
  readonly heldSeconds: number;
  readonly before: ConnectionCounts;
  readonly seenTo: ConnectionCounts;
  readonly seenAll: ConnectionCounts;
  /** Attempts of the last sight that had some: their answers may be under way. */
  readonly recentTo: number;
  readonly recentAll: number;
}

/** Since the last look. */
export interface Sight {
  readonly seconds: number;
  /** Whether a proxy has reported: without one nothing is known. */
  readonly isReported: boolean;
  readonly to: ConnectionCounts;
  readonly all: ConnectionCounts;
  /** Why the new cluster cannot be judged or used at present. */
  readonly obstacle?: string;
  /** Proxies that have left the new cluster because it does not answer from their nodes, of all that report. */
  readonly leftBy?: { readonly nodes: number; readonly of: number };
}

type ShiftReason =
  | 'Measuring'
  | 'Holding'
  | 'TooFewConnections'
  | 'NoReport'
  | 'Obstacle'
  | 'Paused'
  | 'Completed'
  | 'Worse'
  | 'TargetLeft'
  | 'Aborted';

export interface ShiftOutcome {
  readonly state: ShiftState;
  readonly reason: ShiftReason;
  readonly message: string;
}

export const firstState: ShiftState = {
  phase: 'Measuring',
  step: 0,
  percent: 0,
  heldSeconds: 0,
  before: noConnections,
  seenTo: noConnections,
  seenAll: noConnections,
  recentTo: 0,
  recentAll: 0,
};

export function hasEnded({ phase }: { readonly phase?: ShiftPhase }): boolean {
  return phase === 'Completed' || phase === 'RolledBack' || phase === 'Aborted';
}

export function stepShift(plan: ShiftPlan, state: ShiftState, sight: Sight): ShiftOutcome {
  if (state.phase === 'Aborted' || plan.isAborted) return aborted(state);
  if (state.phase === 'Completed') return { state, reason: 'Completed', message: completedMessage(plan, state) };
  if (state.phase === 'RolledBack') return { state, reason: 'Worse', message: worseMessage(plan, state) };
  const seen = withSight(plan, state, sight);
  if (seen.step > 0 && isWorse(plan, seen))
    return { state: { ...seen, phase: 'RolledBack', percent: 0 }, reason: 'Worse', message: worseMessage(plan, seen) };
  const left = leftPart(sight);
  if (seen.step > 0 && left * 100 > plan.maxWorse)
    return {
      state: { ...seen, phase: 'RolledBack', percent: 0 },
      reason: 'TargetLeft',
      message: leftMessage(plan, seen, sight),
    };
  const wait = waitingFor(plan, seen, sight);
  if (wait !== undefined) return { state: seen, ...wait };
  // Forward only if the last attempts could all fail; back only if they could all be answered.
  if (seen.step > 0 && isWorse(plan, { ...seen, recentTo: 0, recentAll: 0 }))
    return { state: seen, reason: 'Holding', message: `holds ${seen.percent} %: ${figures(seen.seenTo)} so far` };
  return next(plan, seen);
}

/** A shift that had moved everything and is ended by hand goes back too. */
function aborted(state: ShiftState): ShiftOutcome {
  const message = 'ended by hand: imports go by their policy again';
  return { state: { ...state, phase: 'Aborted', percent: 0 }, reason: 'Aborted', message };
}

function withSight(plan: ShiftPlan, state: ShiftState, sight: Sight): ShiftState {
  const isObserved = sight.isReported || plan.minConnections === 0;
  const seconds = isObserved && !plan.isPaused && sight.obstacle === undefined ? sight.seconds : 0;
  return {
    ...state,
    phase: state.step === 0 ? 'Measuring' : 'Shifting',
    heldSeconds: state.heldSeconds + seconds,
    before: state.step === 0 ? addCounts(state.before, sight.all) : state.before,
    seenTo: addCounts(state.seenTo, sight.to),
    seenAll: addCounts(state.seenAll, sight.all),
    recentTo: sight.to.tried || state.recentTo,
    recentAll: sight.all.tried || state.recentAll,
  };
}

/** The last attempts may still be answered: they are not counted as failed. */
function isWorse(plan: ShiftPlan, { before, seenTo, seenAll, recentTo, recentAll }: ShiftState): boolean {
  return [
    { ...seenTo, tried: seenTo.tried - recentTo },
    { ...seenAll, tried: seenAll.tried - recentAll },
  ].some((seen) => failuresOf(seen) > tolerated(plan, before, connectionsOf(seen)));
}

/** Too few connections are taken for as many as are needed: those that are missing may all succeed. */
function tolerated({ maxWorse, minConnections }: ShiftPlan, before: ConnectionCounts, connections: number): number {
  const expected = Math.max(connections, minConnections, judgedMin) * Math.min(1, ratio(before) + maxWorse / 100);
  return expected + deviations * Math.sqrt(expected);
}

const judgedMin = 10;
const deviations = 2;

function ratio(counts: ConnectionCounts): number {
  return failuresOf(counts) / Math.max(1, connectionsOf(counts));
}

/** An answer may be counted a moment before its connection is. */
function connectionsOf({ tried, answered }: ConnectionCounts): number {
  return Math.max(tried, answered);
}

/** Those without an answer, refused ones among them, and those that the endpoint reset later. */
function failuresOf({ tried, answered, reset }: ConnectionCounts): number {
  return Math.min(Math.max(tried, answered), Math.max(0, tried - answered) + reset);
}

function waitingFor(
  plan: ShiftPlan,
  state: ShiftState,
  { obstacle, isReported }: Sight,
): { readonly reason: ShiftReason; readonly message: string } | undefined {
  const where = state.step === 0 ? 'before the first step' : `at ${state.percent} %`;
  if (plan.isPaused) return { reason: 'Paused', message: `paused ${where}` };
  if (obstacle !== undefined) return { reason: 'Obstacle', message: `waits ${where}: ${obstacle}` };
  if (!isReported && plan.minConnections > 0)
    return {
      reason: 'NoReport',
      message: `waits ${where}: no portolan proxy here reports connections of this service`,
    };
  const isFirst = state.step === 0;
  const neededSeconds = isFirst ? Math.min(plan.everySeconds, measureSecondsMax) : plan.everySeconds;
  const seen = isFirst ? state.before : state.seenTo;
  if (state.heldSeconds < neededSeconds) {
    const left = `${Math.ceil(neededSeconds - state.heldSeconds)} s`;
    return isFirst
      ? { reason: 'Measuring', message: `measures what fails before the first step, ${left} left` }
      : { reason: 'Holding', message: `${state.percent} % go to ${plan.to}, ${left} left; ${figures(seen)}` };
  }
  const connections = connectionsOf(seen);
  if (connections >= plan.minConnections) return undefined;
  const to = isFirst ? '' : ` to ${plan.to}`;
  const few = `${connections} of ${plan.minConnections} connections${to} were seen`;
  return { reason: 'TooFewConnections', message: `waits ${where}: ${few}, too few to judge` };
}

const measureSecondsMax = 60;

function next(plan: ShiftPlan, state: ShiftState): ShiftOutcome {
  const percent = plan.steps[state.step];
  if (percent === undefined) {
    const completed = { ...state, phase: 'Completed' as const };
    return { state: completed, reason: 'Completed', message: completedMessage(plan, completed) };
  }
  const begun: ShiftState = {
    ...state,
    phase: 'Shifting',
    step: state.step + 1,
    percent,
    heldSeconds: 0,
    seenTo: noConnections,
    seenAll: noConnections,
    recentTo: 0,
    recentAll: 0,
  };
  return { state: begun, reason: 'Holding', message: `${percent} % go to ${plan.to}, ${plan.everySeconds} s left` };
}

function completedMessage({ to }: ShiftPlan, { percent, seenTo }: ShiftState): string {
  return `${percent} % go to ${to} (${figures(seenTo)}): write it into the policy, then delete the shift`;
}

function worseMessage({ to, steps, maxWorse }: ShiftPlan, { step, before, seenTo, seenAll }: ShiftState): string {
  const at = `at ${steps[step - 1] ?? 0} %: to ${to} ${figures(seenTo)}, to all ${figures(seenAll)}`;
  return `went back ${at}; before ${figures(before)}, ${maxWorse} points more are allowed`;
}

/** Nodes that have left the new cluster see no failures any more: each counts with all its connections. */
function leftPart({ leftBy }: Sight): number {
  return leftBy === undefined || leftBy.of === 0 ? 0 : leftBy.nodes / leftBy.of;
}

function leftMessage({ to, steps }: ShiftPlan, { step, seenTo }: ShiftState, { leftBy }: Sight): string {
  const nodes = `${leftBy!.nodes} of ${leftBy!.of} node${leftBy!.of === 1 ? '' : 's'}`;
  return `went back at ${steps[step - 1] ?? 0} %: ${to} does not answer from ${nodes} (${figures(seenTo)})`;
}

function figures(counts: ConnectionCounts): string {
  return `${failuresOf(counts)} of ${connectionsOf(counts)} failed`;
}
