// Defaults and checks of roles and bindings: the rules of Kubernetes. Pure.

import { isSameJson } from '../../base/json.ts';
import { checkRequiredText } from '../../kube/objects/checks.ts';
import { type FieldError, invalid, notSupported, required } from '../../kube/objects/field-error.ts';
import { isPathSegment } from '../../kube/objects/names.ts';
import { rbacGroup } from './escalation.ts';
import type { BindingObject, RoleObject, Subject } from './rbac-index.ts';
import type { PolicyRule } from './rules.ts';

type Scope = 'namespace' | 'cluster';

export function validateRole(role: RoleObject, scope: Scope): FieldError[] {
  return (role.rules ?? []).flatMap((rule, index) => validateRule(rule, `rules[${index}]`, scope));
}

function validateRule(rule: PolicyRule, field: string, scope: Scope): FieldError[] {
  const errors: FieldError[] = [];
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  if ((rule.verbs ?? []).length === 0) errors.push(required(`${field}.verbs`, 'at least one verb'));
  if (nonResourceURLs.length > 0) {
    const urls = `${field}.nonResourceURLs`;
    if (scope === 'namespace') {
      errors.push(invalid(urls, nonResourceURLs, 'a rule of a namespace cannot have URLs'));
    }
    if (apiGroups.length + resources.length + resourceNames.length > 0) {
      errors.push(invalid(urls, nonResourceURLs, 'a rule is about resources or about URLs, not both'));
    }
    return errors;
  }
  if (apiGroups.length === 0) {
    errors.push(required(`${field}.apiGroups`, 'at least one API group'));
  }
  if (resources.length === 0) {
    errors.push(required(`${field}.resources`, 'at least one resource'));
  }
  return errors;
}

/** Changes the binding in place. */
export function applyBindingDefaults(binding: BindingObject): void {
  const { roleRef, subjects } = binding as Mutable<BindingObject>;
  if (roleRef !== undefined && (roleRef.apiGroup ?? '') === '')
    (roleRef as Mutable<typeof roleRef>).apiGroup = rbacGroup;
  for (const subject of (subjects ?? []) as Mutable<Subject>[]) {
    if ((subject.apiGroup ?? '') === '' && subject.kind !== 'ServiceAccount') subject.apiGroup = rbacGroup;
  }
}

export function validateBinding(
  binding: BindingObject,
  previous: BindingObject | undefined,
  scope: Scope,
): FieldError[] {
  const errors = validateRoleRef(binding, scope);
  for (const [index, subject] of (binding.subjects ?? []).entries()) {
    errors.push(...validateSubject(subject, `subjects[${index}]`));
  }
  if (previous !== undefined && !isSameJson(binding.roleRef, previous.roleRef)) {
    errors.push(invalid('roleRef', binding.roleRef, 'cannot change roleRef'));
  }
  return errors;
}

function validateRoleRef({ roleRef }: BindingObject, scope: Scope): FieldError[] {
  if (roleRef === undefined) return [];
  const errors: FieldError[] = [];
  const kinds = scope === 'namespace' ? ['ClusterRole', 'Role'] : ['ClusterRole'];
  if (roleRef.apiGroup !== rbacGroup) errors.push(notSupported('roleRef.apiGroup', roleRef.apiGroup, [rbacGroup]));
  if (!kinds.includes(roleRef.kind)) errors.push(notSupported('roleRef.kind', roleRef.kind, kinds));
  checkRequiredText(errors, 'roleRef.name', roleRef.name, isPathSegment);
  return errors;
}

function validateSubject(subject: Subject, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const kinds = ['ServiceAccount', 'User', 'Group'];
  const group = subject.apiGroup ?? '';
  if (subject.name === '') errors.push(required(`${field}.name`));
  if (!kinds.includes(subject.kind)) return [...errors, notSupported(`${field}.kind`, subject.kind, kinds)];
  if (subject.kind === 'ServiceAccount') {
    if (group !== '') errors.push(notSupported(`${field}.apiGroup`, group, ['']));
    if ((subject.namespace ?? '') === '') errors.push(required(`${field}.namespace`));
    return errors;
  }
  if (group !== rbacGroup) errors.push(notSupported(`${field}.apiGroup`, group, [rbacGroup]));
  return errors;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
