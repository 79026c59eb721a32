// Runs this cluster's TrafficShifts: looks at what proxies have counted, takes each shift to its next step or back by the pure rule,
// and writes its status. Imports read the percent there: a shift whose status cannot be written stays at its step.

import { isSameJson } from '../../../base/json.ts';
import type { WorkResult } from '../../../base/queue.ts';
import type { Informer } from '../../../kube/controller/informer.ts';
import { formatTime, type WantedCondition, withConditions } from '../../../kube/objects/conditions.ts';
import {
  addCounts,
  type ConnectionCounts,
  type CountsByCluster,
  countsSince,
  noConnections,
} from '../../../kube/objects/reports/connections.ts';
import type { AgentContext } from '../../copies/context.ts';
import { countedRecords } from '../../copies/counted-records.ts';
import type { DataPlanes } from '../../copies/data-planes.ts';
import { type TrafficShift, type TrafficShiftStatus, trafficShiftType } from '../../kinds/traffic-shift.ts';
import { formatServiceKey, parseServiceKey, type ServiceKey } from '../../rules/names.ts';
import { sourceOfImport } from '../../rules/routing/import-as.ts';
import { readRouting, routedByAnnotation, routingAnnotation } from '../../rules/routing/routing.ts';
import { hasEnded, type ShiftOutcome, type ShiftState, type Sight, stepShift } from '../../rules/routing/shift-step.ts';
import { decidingShift, hasBegun, planOf, shiftProblem, stateOf } from '../../rules/routing/shifts.ts';

/** Index of the informer: by the service that they shift. */
export const shiftsByService = 'service';

export function shiftedService({ metadata, spec }: TrafficShift): string | undefined {
  return spec?.service === undefined
    ? undefined
    : formatServiceKey({ namespace: metadata.namespace!, name: spec.service });
}

interface Memory {
  readonly uid: string;
  readonly atMs: number;
  readonly state: ShiftState;
  readonly counts: ReadonlyMap<string, CountsByCluster>;
  readonly writtenMs: number;
}

/** Between two looks; proxies report every five seconds. */
const lookMs = 2_000;
/** Time that is left out of a step if nobody looked for longer. */
const lookMsMax = 3 * lookMs;
/** Figures that change nothing are written this often. */
const figuresMs = 10_000;

export class Shifts {
  readonly #context: AgentContext;
  readonly #shifts: Informer<TrafficShift>;
  readonly #dataPlanes: Pick<DataPlanes, 'countsOf' | 'leftBy'>;
  readonly #memories = new Map<string, Memory>();

  constructor(
    context: AgentContext,
    shifts: Informer<TrafficShift>,
    dataPlanes: Pick<DataPlanes, 'countsOf' | 'leftBy'>,
  ) {
    this.#context = context;
    this.#shifts = shifts;
    this.#dataPlanes = dataPlanes;
  }

  /** Undefined if no shift has a say; `unknown` while shifts were not read. */
  of(service: ServiceKey): TrafficShift | 'unknown' | undefined {
    if (!this.#shifts.hasSynced) return 'unknown';
    return decidingShift(this.#shifts.byIndex(shiftsByService, formatServiceKey(service)));
  }

  async reconcile(key: string): Promise<WorkResult | undefined> {
    const shift = this.#shifts.get(key);
    if (shift === undefined) {
      this.#memories.delete(key);
      return undefined;
    }
    const refusal = this.#refusalOf(shift);
    if (refusal !== undefined) {
      this.#memories.delete(key);
      await this.#write(shift, { phase: 'Refused', message: refusal.message }, refusal);
      return { requeueAfterMs: refusedMs };
    }
    // Why it went back stays as it was written.
    const isOver = shift.status?.phase === 'RolledBack' && shift.spec?.abort !== true;
    if (isOver && shift.status?.observedGeneration === shift.metadata.generation) return undefined;
    const nowMs = this.#context.world.clock.monotonicMs();
    const known = this.#memories.get(key);
    const memory = known?.uid === shift.metadata.uid ? known : undefined;
    const isNews = memory === undefined || shift.spec?.abort === true || hasEnded(memory.state);
    if (!isNews && nowMs - memory.atMs < lookMs) return { requeueAfterMs: lookMs - (nowMs - memory.atMs) };
    const { outcome, counts } = this.#look(shift, memory, nowMs);
    const before = memory?.state ?? stateOf(shift);
    const isMove = outcome.state.phase !== shift.status?.phase || outcome.state.percent !== shift.status?.percent;
    const isDue = nowMs - (memory?.writtenMs ?? Number.NEGATIVE_INFINITY) >= figuresMs;
    const isChanged = isMove || isDue || outcome.state.step !== before.step || reasonOf(shift) !== outcome.reason;
    const { recentTo: _to, recentAll: _all, ...shown } = outcome.state;
    if (isChanged) await this.#write(shift, { ...shown, message: outcome.message }, accepted, progressOf(outcome));
    const writtenMs = isChanged ? nowMs : (memory?.writtenMs ?? nowMs);
    this.#memories.set(key, { uid: shift.metadata.uid ?? '', atMs: nowMs, state: outcome.state, counts, writtenMs });
    return hasEnded(outcome.state) ? undefined : { requeueAfterMs: lookMs };
  }

  #look(shift: TrafficShift, memory: Memory | undefined, nowMs: number) {
    const service = shiftedService(shift)!;
    const now = this.#dataPlanes.countsOf(service);
    const counts = new Map(now.map(({ holder, clusters }) => [holder, clusters]));
    const seconds = memory === undefined ? 0 : Math.min(nowMs - memory.atMs, lookMsMax) / 1000;
    const seen = memory === undefined ? new Map<string, ConnectionCounts>() : countsBetween(memory.counts, counts);
    const obstacle = this.#obstacleOf(shift);
    const sight: Sight = {
      seconds,
      isReported: now.length > 0,
      to: seen.get(shift.spec!.to) ?? noConnections,
      all: [...seen.values()].reduce(addCounts, noConnections),
      ...(obstacle === undefined ? {} : { obstacle: obstacle.message }),
      leftBy: this.#dataPlanes.leftBy(service, shift.spec!.to),
    };
    return { outcome: stepShift(planOf(shift.spec)!, memory?.state ?? stateOf(shift), sight), counts };
  }

  /** Only of one that has not begun: later the step is kept. */
  #refusalOf(shift: TrafficShift): WantedCondition | undefined {
    const refuse = (reason: string, message: string): WantedCondition => ({
      type: 'Accepted',
      status: 'False',
      reason,
      message,
    });
    const problem = shiftProblem(shift.spec);
    if (problem !== undefined) return refuse('Invalid', problem);
    if (hasEnded(shift.status ?? {})) return undefined;
    const first = decidingShift(this.#shifts.byIndex(shiftsByService, shiftedService(shift)!));
    if (first !== undefined && first.metadata.name !== shift.metadata.name)
      return refuse(
        'OtherShift',
        `TrafficShift ${first.metadata.namespace}/${first.metadata.name} shifts this service (${first.status?.phase ?? 'not begun'}): delete one of the two`,
      );
    const obstacle = hasBegun(shift) ? undefined : this.#obstacleOf(shift);
    return obstacle && refuse(obstacle.reason, obstacle.message);
  }

  #obstacleOf({ metadata, spec }: TrafficShift) {
    const { from, to, service: name } = spec!;
    const service = { namespace: metadata.namespace!, name };
    const present = this.#context.copies.imports.get(formatServiceKey(service));
    if (present === undefined) return { reason: 'NoImport', message: `this cluster does not import ${name}` };
    const source = parseServiceKey(sourceOfImport(present));
    const records = countedRecords(this.#context, source, {
      onlyFor: this.#context.membership.clusterId,
      withLegacy: true,
    });
    const missing = [from, to].filter((id) => !records.some(({ cluster }) => cluster === id));
    if (missing.length > 0)
      return { reason: 'NotExported', message: `${missing.join(' and ')} does not export ${name} to this cluster` };
    const annotations = present.metadata.annotations ?? {};
    if (readRouting(annotations[routingAnnotation] ?? '').excluded.includes(to))
      return {
        reason: 'Excluded',
        message: `${to} is excluded by ${annotations[routedByAnnotation] ?? 'the ClusterSet'}`,
      };
    return undefined;
  }

  async #write(
    shift: TrafficShift,
    next: Omit<TrafficShiftStatus, 'conditions'>,
    ...conditions: WantedCondition[]
  ): Promise<void> {
    const observedGeneration = shift.metadata.generation;
    const stamp = { now: formatTime(this.#context.world.clock.wallMs()), observedGeneration };
    const status = {
      ...next,
      ...(next.heldSeconds === undefined ? {} : { heldSeconds: Math.round(next.heldSeconds) }),
      observedGeneration,
      conditions: [...withConditions(shift.status?.conditions, conditions, stamp)],
    };
    if (!isSameJson(status, shift.status))
      await this.#context.home.updateStatus(trafficShiftType, { ...shift, status });
  }
}

/** Another shift, an export or a policy may have changed meanwhile. */
const refusedMs = 10_000;

const accepted: WantedCondition = {
  type: 'Accepted',
  status: 'True',
  reason: 'Accepted',
  message: 'it lies over the policy of the import',
};

function progressOf({ reason, message }: ShiftOutcome): WantedCondition {
  const isMoving = reason === 'Measuring' || reason === 'Holding' || reason === 'Completed';
  return { type: 'Progressing', status: isMoving ? 'True' : 'False', reason, message };
}

function reasonOf({ status }: TrafficShift): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Progressing')?.reason;
}

/** By cluster. A proxy that was not there before has begun to count since. */
function countsBetween(
  before: ReadonlyMap<string, CountsByCluster>,
  now: ReadonlyMap<string, CountsByCluster>,
): Map<string, ConnectionCounts> {
  const sums = new Map<string, ConnectionCounts>();
  for (const [holder, clusters] of now)
    for (const [cluster, counts] of clusters) {
      const since = countsSince(before.get(holder)?.get(cluster) ?? noConnections, counts);
      sums.set(cluster, addCounts(sums.get(cluster) ?? noConnections, since));
    }
  return sums;
}
