// Index of roles and bindings by subject, so that a decision looks only at rules bound to the client. Kept up to date
// from outside, object by object.

import type { LabelSelector } from '../../kube/objects/label-selector.ts';
import type { User } from '../model/access.ts';
import { type AggregableRole, effectiveRules, type PolicyRule } from './rules.ts';

export interface RoleObject {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> };
  readonly rules?: readonly PolicyRule[] | null;
  readonly aggregationRule?: { readonly clusterRoleSelectors?: readonly LabelSelector[] };
}

export interface RoleRef {
  readonly apiGroup: string;
  readonly kind: string;
  readonly name: string;
}

export interface Subject {
  readonly kind: string;
  readonly apiGroup?: string;
  readonly name: string;
  readonly namespace?: string;
}

export interface BindingObject {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly subjects?: readonly Subject[] | null;
  readonly roleRef: RoleRef;
}

interface Bound {
  /** Empty for a ClusterRoleBinding. */
  readonly namespace: string;
  readonly name: string;
  readonly roleRef: RoleRef;
  readonly subjects: readonly string[];
}

/** Bindings of one subject, each with the words that say so. */
type Bounds = Map<Bound, string>;

/** A rule that holds for a subject, and why. */
export interface Grant {
  readonly rule: PolicyRule;
  readonly binding: string;
}

const clusterScope = '';

export class RbacIndex {
  readonly #roles = new Map<string, readonly PolicyRule[]>();
  readonly #clusterRoles = new Map<string, AggregableRole>();
  /** Rules of aggregated roles, forgotten whenever any ClusterRole changes. */
  readonly #aggregated = new Map<string, readonly PolicyRule[]>();
  readonly #bindings = new Map<string, Bound>();
  /** Subject, then namespace (empty for the whole cluster), then bindings. */
  readonly #bySubject = new Map<string, Map<string, Bounds>>();

  setRole(role: RoleObject): void {
    this.#roles.set(`${role.metadata.namespace}/${role.metadata.name}`, role.rules ?? []);
  }

  removeRole(namespace: string, name: string): void {
    this.#roles.delete(`${namespace}/${name}`);
  }

  setClusterRole(role: RoleObject): void {
    const { name, labels = {} } = role.metadata;
    const selectors = role.aggregationRule?.clusterRoleSelectors;
    this.#clusterRoles.set(name, { name, labels, rules: role.rules ?? [], ...(selectors && { selectors }) });
    this.#aggregated.clear();
  }

  removeClusterRole(name: string): void {
    this.#clusterRoles.delete(name);
    this.#aggregated.clear();
  }

  setBinding(binding: BindingObject): void {
    const { name, namespace = clusterScope } = binding.metadata;
    this.removeBinding(namespace, name);
    const subjects = [...new Set((binding.subjects ?? []).map((subject) => subjectKey(subject)))];
    const bound = { namespace, name, roleRef: binding.roleRef, subjects };
    this.#bindings.set(`${namespace}/${name}`, bound);
    for (const subject of subjects) this.#place(subject, bound);
  }

  removeBinding(namespace: string, name: string): void {
    const key = `${namespace}/${name}`;
    const bound = this.#bindings.get(key);
    if (bound === undefined) return;
    this.#bindings.delete(key);
    for (const subject of bound.subjects) this.#displace(subject, bound);
  }

  /** Undefined if there is no such role. A Role is looked for in the namespace. */
  rulesOfRole(roleRef: RoleRef, namespace: string): readonly PolicyRule[] | undefined {
    if (roleRef.kind === 'Role') return this.#roles.get(`${namespace}/${roleRef.name}`);
    const role = this.#clusterRoles.get(roleRef.name);
    return role?.selectors === undefined ? role?.rules : this.#aggregatedRules(role);
  }

  /** The first rule that holds for the user in the namespace (or, with an empty one, everywhere) and passes the test. */
  find(user: User, namespace: string, isWanted: (rule: PolicyRule) => boolean): Grant | undefined {
    const found = this.#findBySubject(`User ${user.name}`, namespace, isWanted);
    if (found !== undefined) return found;
    for (const group of user.groups) {
      const grant = this.#findBySubject(`Group ${group}`, namespace, isWanted);
      if (grant !== undefined) return grant;
    }
    return undefined;
  }

  rulesOf(user: User, namespace: string): PolicyRule[] {
    const rules: PolicyRule[] = [];
    this.find(user, namespace, (rule) => {
      rules.push(rule);
      return false;
    });
    return rules;
  }

  #findBySubject(subject: string, namespace: string, isWanted: (rule: PolicyRule) => boolean): Grant | undefined {
    const places = this.#bySubject.get(subject);
    if (places === undefined) return undefined;
    const found = this.#findByBinding(places.get(clusterScope), isWanted);
    if (found !== undefined || namespace === clusterScope) return found;
    return this.#findByBinding(places.get(namespace), isWanted);
  }

  #findByBinding(bounds: Bounds | undefined, isWanted: (rule: PolicyRule) => boolean): Grant | undefined {
    if (bounds === undefined) return undefined;
    for (const [bound, binding] of bounds) {
      const rule = this.rulesOfRole(bound.roleRef, bound.namespace)?.find(isWanted);
      if (rule !== undefined) return { rule, binding };
    }
    return undefined;
  }

  #aggregatedRules(role: AggregableRole): readonly PolicyRule[] {
    const known = this.#aggregated.get(role.name);
    if (known !== undefined) return known;
    const rules = effectiveRules(role, this.#clusterRoles.values());
    this.#aggregated.set(role.name, rules);
    return rules;
  }

  #place(subject: string, bound: Bound): void {
    const places = getOrMake(this.#bySubject, subject, () => new Map<string, Bounds>());
    getOrMake(places, bound.namespace, () => new Map()).set(bound, describe(bound, subject));
  }

  #displace(subject: string, bound: Bound): void {
    const places = this.#bySubject.get(subject);
    const bounds = places?.get(bound.namespace);
    bounds?.delete(bound);
    if (bounds?.size === 0) places?.delete(bound.namespace);
    if (places?.size === 0) this.#bySubject.delete(subject);
  }
}

/** A service account is a user by another name. */
function subjectKey(subject: Subject): string {
  if (subject.kind !== 'ServiceAccount') return `${subject.kind} ${subject.name}`;
  return `User system:serviceaccount:${subject.namespace ?? ''}:${subject.name}`;
}

function describe({ namespace, name, roleRef }: Bound, subject: string): string {
  const kind = namespace === '' ? 'ClusterRoleBinding' : 'RoleBinding';
  const place = namespace === '' ? name : `${name}/${namespace}`;
  const [subjectKind, ...subjectName] = subject.split(' ');
  const to = `${subjectKind} ${JSON.stringify(subjectName.join(' '))}`;
  return `${kind} ${JSON.stringify(place)} of ${roleRef.kind} ${JSON.stringify(roleRef.name)} to ${to}`;
}

function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
