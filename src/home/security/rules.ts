// Evaluates RBAC: what a rule allows, when a set of rules holds everything another one gives, and the rules of a ClusterRole that
// aggregates others. Pure, as Kubernetes has it.

import { type LabelSelector, selectsLabels } from '../../kube/objects/label-selector.ts';
import type { Attributes } from '../model/access.ts';

export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

export function allows(rule: PolicyRule, attributes: Attributes): boolean {
  if (attributes.path !== undefined) {
    return has(rule.verbs, attributes.verb) && hasPath(rule.nonResourceURLs, attributes.path);
  }
  const { verb, group, resource, subresource, name } = attributes;
  return (
    has(rule.verbs, verb) &&
    has(rule.apiGroups, group) &&
    hasResource(rule.resources, resource, subresource) &&
    hasName(rule.resourceNames, name)
  );
}

function has(list: readonly string[] | undefined, wanted: string): boolean {
  return list !== undefined && (list.includes(wanted) || list.includes('*'));
}

function hasResource(list: readonly string[] | undefined, resource: string, subresource: string): boolean {
  if (list === undefined) return false;
  if (list.includes('*')) return true;
  if (subresource === '') return list.includes(resource);
  return list.includes(`${resource}/${subresource}`) || list.includes(`*/${subresource}`);
}

// A request without a name (create, list of everything, deletecollection) is not about any of the names.
function hasName(list: readonly string[] | undefined, name: string): boolean {
  return list === undefined || list.length === 0 || (name !== '' && list.includes(name));
}

function hasPath(list: readonly string[] | undefined, path: string): boolean {
  return list?.some((pattern) => matchesPath(pattern, path)) ?? false;
}

function matchesPath(pattern: string, path: string): boolean {
  if (pattern === '*' || pattern === path) return true;
  return pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1));
}

/** How often one request may have a single grant compared with a rule; far above anything written by hand. */
const comparisonsMax = 200_000;

/** The grants of `wanted` that `held` does not cover, as rules; empty if every one is held. */
export function uncovered(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  const missing: PolicyRule[] = [];
  let looked = 0;
  for (const rule of wanted) {
    looked += grantCount(rule) * Math.max(1, held.length);
    if (looked > comparisonsMax) return [...missing, rule];
    missing.push(...missingGrants(held, rule));
  }
  return missing;
}

function grantCount(rule: PolicyRule): number {
  const resources = length(rule.apiGroups) * length(rule.resources) * Math.max(1, length(rule.resourceNames));
  return rule.verbs.length * (resources + length(rule.nonResourceURLs));
}

function missingGrants(held: readonly PolicyRule[], rule: PolicyRule): PolicyRule[] {
  return [...singleTargets(rule)].flatMap((target) => {
    const verbs = rule.verbs.filter((verb) => !held.some((owner) => covers(owner, { ...target, verbs: [verb] })));
    return verbs.length === 0 ? [] : [{ ...target, verbs }];
  });
}

/** The rule taken apart: one group, one resource and at most one name, or one path, in each. */
function* singleTargets(rule: PolicyRule): Generator<Omit<PolicyRule, 'verbs'>> {
  const names = length(rule.resourceNames) === 0 ? [undefined] : (rule.resourceNames ?? []);
  for (const group of rule.apiGroups ?? []) {
    for (const resource of rule.resources ?? []) {
      for (const name of names) {
        yield {
          apiGroups: [group],
          resources: [resource],
          ...(name === undefined ? {} : { resourceNames: [name] }),
        };
      }
    }
  }
  for (const path of rule.nonResourceURLs ?? []) yield { nonResourceURLs: [path] };
}

function covers(owner: PolicyRule, single: PolicyRule): boolean {
  if (!has(owner.verbs, single.verbs[0] ?? '')) return false;
  const path = single.nonResourceURLs?.[0];
  if (path !== undefined) return hasPath(owner.nonResourceURLs, path);
  const [resource = '', ...subresource] = (single.resources?.[0] ?? '').split('/');
  return (
    has(owner.apiGroups, single.apiGroups?.[0] ?? '') &&
    hasResource(owner.resources, resource, subresource.join('/')) &&
    hasName(owner.resourceNames, single.resourceNames?.[0] ?? '')
  );
}

function length(list: readonly string[] | undefined): number {
  return list?.length ?? 0;
}

/** As Kubernetes prints it when users grant rights that they do not have. */
export function formatRule(rule: PolicyRule): string {
  const fields: [string, readonly string[] | undefined][] = [
    ['APIGroups', rule.apiGroups],
    ['Resources', rule.resources],
    ['ResourceNames', rule.resourceNames],
    ['NonResourceURLs', rule.nonResourceURLs],
    ['Verbs', rule.verbs],
  ];
  const texts = fields.flatMap(([name, list]) => (list === undefined ? [] : [`${name}:${JSON.stringify(list)}`]));
  return `{${texts.join(', ')}}`;
}

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
