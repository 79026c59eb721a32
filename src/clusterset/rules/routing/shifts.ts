// Which TrafficShift of a service decides, what is wrong with one, and what the shift does to the routing of the import. Pure.

import { compareText } from '../../../base/compare-text.ts';
import type { TrafficShift, TrafficShiftSpec } from '../../kinds/traffic-shift.ts';
import type { Routing } from './routing.ts';
import { firstState, type ShiftPlan, type ShiftState } from './shift-step.ts';

/** One that has begun keeps the service; else the oldest, then the first by name. Those that went back have no say. */
export function decidingShift(shifts: Iterable<TrafficShift>): TrafficShift | undefined {
  let first: TrafficShift | undefined;
  for (const shift of shifts) {
    const { phase } = shift.status ?? {};
    const isOver = phase === 'RolledBack' || phase === 'Aborted' || shift.metadata.deletionTimestamp !== undefined;
    if (isOver || planOf(shift.spec) === undefined) continue;
    if (first === undefined || isBefore(shift, first)) first = shift;
  }
  return first;
}

function isBefore(one: TrafficShift, other: TrafficShift): boolean {
  if (hasBegun(one) !== hasBegun(other)) return hasBegun(one);
  const byAge = compareText(one.metadata.creationTimestamp ?? '', other.metadata.creationTimestamp ?? '');
  return (byAge === 0 ? compareText(one.metadata.name, other.metadata.name) : byAge) < 0;
}

export function hasBegun({ status }: TrafficShift): boolean {
  return status?.phase !== undefined && status.phase !== 'Refused';
}

/** Lies over what the policy says; a shift that measures moves nothing and has its connections counted. */
export function overlaidBy(routing: Routing, shift: TrafficShift | undefined): Routing {
  if (shift?.spec === undefined) return routing;
  if (!hasBegun(shift)) return routing;
  return { ...routing, shift: { from: shift.spec.from, to: shift.spec.to, percent: shift.status?.percent ?? 0 } };
}

export const shiftDefaults = { maxWorse: 2, minConnections: 100 } as const;
const everySecondsMax = 7 * 86_400;
const stepsMax = 20;

/** Why it cannot be followed; undefined if it can. */
export function shiftProblem(spec: TrafficShiftSpec | undefined): string | undefined {
  const { from, to, steps, every, maxWorse, minConnections } = spec ?? ({} as Partial<TrafficShiftSpec>);
  if (!spec?.service || !from || !to) return 'service, from and to are needed';
  if (from === to) return `from and to are both ${from}`;
  if (!Array.isArray(steps) || steps.length === 0 || steps.length > stepsMax)
    return `steps: give 1 to ${stepsMax} percents, such as 5, 25, 50, 100`;
  const isRising = steps.every(
    (step, index) => Number.isInteger(step) && step > (index === 0 ? 0 : steps[index - 1]!) && step <= 100,
  );
  if (!isRising)
    return `steps ${steps.join(', ').slice(0, 80)}: they are whole percents from 1 to 100, each above the one before`;
  if (readSeconds(every) === undefined)
    return `every ${JSON.stringify(every)?.slice(0, 40)}: write a time such as 90s, 5m or 1h, up to a week`;
  if (!isAbsentOr(maxWorse, 0, 100)) return `maxWorse: want a number from 0 to 100`;
  if (!isAbsentOr(minConnections, 0, 1_000_000)) return 'minConnections: want a number from 0 to 1000000';
  return undefined;
}

function isAbsentOr(value: number | null | undefined, least: number, most: number): boolean {
  return value === undefined || value === null || (typeof value === 'number' && value >= least && value <= most);
}

/** `90s`, `5m`, `1h`; undefined for anything else. */
export function readSeconds(text: unknown): number | undefined {
  const [, digits, unit] = /^(\d{1,6})(s|m|h)$/.exec(typeof text === 'string' ? text : '') ?? [];
  const seconds = Number(digits ?? 0) * (unit === 'h' ? 3600 : unit === 'm' ? 60 : 1);
  return seconds > 0 && seconds <= everySecondsMax ? seconds : undefined;
}

export function planOf(spec: TrafficShiftSpec | undefined): ShiftPlan | undefined {
  if (spec === undefined || shiftProblem(spec) !== undefined) return undefined;
  return {
    to: spec.to,
    steps: spec.steps,
    everySeconds: readSeconds(spec.every)!,
    maxWorse: spec.maxWorse ?? shiftDefaults.maxWorse,
    minConnections: spec.minConnections ?? shiftDefaults.minConnections,
    isPaused: spec.paused === true,
    isAborted: spec.abort === true,
  };
}

/** As its status has it; from the beginning if that says nothing. */
export function stateOf(shift: TrafficShift): ShiftState {
  if (!hasBegun(shift)) return firstState;
  const { status, spec } = shift;
  const { step, percent } = status ?? {};
  return {
    phase: status!.phase!,
    step: Math.min(step ?? 0, spec?.steps.length ?? 0),
    percent: percent ?? 0,
    heldSeconds: status?.heldSeconds ?? 0,
    before: status?.before ?? firstState.before,
    seenTo: status?.seenTo ?? firstState.seenTo,
    seenAll: status?.seenAll ?? firstState.seenAll,
    recentTo: 0,
    recentAll: 0,
  };
}
