// The rules of a ClusterRole that is made of others: all rules of all roles that its selectors choose. Pure.

import { type LabelSelector, selectsLabels } from '../../kube/objects/label-selector.ts';
import type { PolicyRule } from './rules.ts';

export interface AggregableRole {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly rules: readonly PolicyRule[];
  /** Set: `rules` count for nothing, the roles these choose do. */
  readonly selectors?: readonly LabelSelector[];
}

/** Roles may be made of roles that are made of roles; one that is reached twice counts once. */
export function effectiveRules(role: AggregableRole, all: Iterable<AggregableRole>): readonly PolicyRule[] {
  if (role.selectors === undefined) return role.rules;
  const roles = [...all];
  const reached = new Set([role.name]);
  const rules = new Map<string, PolicyRule>();
  const waiting: AggregableRole[] = [role];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { selectors } = next;
    if (selectors === undefined) for (const rule of next.rules) rules.set(JSON.stringify(rule), rule);
    if (selectors === undefined) continue;
    for (const chosen of roles) {
      if (reached.has(chosen.name) || !selectors.some((selector) => selectsLabels(selector, chosen.labels))) continue;
      reached.add(chosen.name);
      waiting.push(chosen);
    }
  }
  return [...rules.values()];
}
