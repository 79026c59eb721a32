// Conditions as Kubernetes keeps them: one per type, the transition time moving only when the status does. Pure.

import type { Condition } from './object.ts';

export interface WantedCondition {
  readonly type: string;
  readonly status: Condition['status'];
  readonly reason: string;
  readonly message: string;
}

export interface ConditionStamp {
  /** RFC 3339 in whole seconds. */
  readonly now: string;
  readonly observedGeneration?: number;
}

/** As metav1.Condition limits it. */
const messageLengthMax = 32_768;

/**
 * The conditions afterwards, those of other writers left as they are. The very same array when nothing changed, so that
 * a caller can tell that there is nothing to write.
 */
export function withConditions(
  present: readonly Condition[] | undefined,
  wanted: readonly WantedCondition[],
  stamp: ConditionStamp,
): readonly Condition[] {
  const conditions = [...(present ?? [])];
  let hasChanged = false;
  for (const want of wanted) {
    const index = conditions.findIndex(({ type }) => type === want.type);
    const next = stamped(conditions[index], want, stamp);
    if (next === conditions[index]) continue;
    hasChanged = true;
    if (index < 0) conditions.push(next);
    else conditions[index] = next;
  }
  return hasChanged || present === undefined ? conditions : present;
}

export function conditionOf(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** RFC 3339 in whole seconds, as metav1.Time writes it. */
export function formatTime(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}

function stamped(present: Condition | undefined, want: WantedCondition, stamp: ConditionStamp): Condition {
  const message = want.message.slice(0, messageLengthMax);
  const isSame =
    present !== undefined &&
    present.status === want.status &&
    present.reason === want.reason &&
    present.message === message &&
    present.observedGeneration === stamp.observedGeneration;
  if (isSame) return present;
  return {
    type: want.type,
    status: want.status,
    reason: want.reason,
    message,
    lastTransitionTime: present?.status === want.status ? present.lastTransitionTime : stamp.now,
    observedGeneration: stamp.observedGeneration,
  };
}
