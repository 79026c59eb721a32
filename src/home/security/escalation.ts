// Prevents escalation: a role or a binding may only grant what its writer holds, unless the writer
// was given the verb `escalate` (roles) or `bind` (bindings) on it.

import { isSameJson } from '../../base/json.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { Attributes, User } from '../model/access.ts';
import type { Admission } from '../model/kind.ts';
import { StatusError } from '../model/status.ts';
import type { ApiAccess } from './create-access.ts';
import type { BindingObject, RoleObject, RoleRef } from './rbac-index.ts';
import { formatRule, type PolicyRule, uncovered } from './rules.ts';

export const rbacGroup = 'rbac.authorization.k8s.io';

type Asked = Pick<Admission, 'operation' | 'user' | 'object' | 'previous'>;

/** Throws StatusError Forbidden. */
export function refuseRoleEscalation(access: ApiAccess, { operation, user, object, previous }: Asked): void {
  if (operation === 'delete') return;
  const [role, before] = [asRole(object), previous === undefined ? undefined : asRole(previous)];
  const isSame = before !== undefined && isSameJson(contentOf(role), contentOf(before));
  if (isSame || may(access, user, 'escalate', object)) return;
  if (role.aggregationRule !== undefined) {
    // Its grants depend on labels that others write, so they may be anything.
    const isAdmin = uncovered(access.rulesOf(user, ''), everyRule).length === 0;
    if (!isAdmin) throw escalation(object, 'must have cluster-admin privileges to use the aggregationRule');
  }
  refuseGrants(access, user, object, role.rules ?? []);
}

/** Throws StatusError Forbidden, or NotFound for a role that cannot be looked into. */
export function refuseBindingEscalation(access: ApiAccess, { operation, user, object, previous }: Asked): void {
  if (operation === 'delete') return;
  const [binding, before] = [asBinding(object), previous === undefined ? undefined : asBinding(previous)];
  const isSame =
    before !== undefined &&
    isSameJson(binding.roleRef, before.roleRef) &&
    isSameJson(binding.subjects ?? [], before.subjects ?? []);
  if (isSame || mayBind(access, user, object, binding.roleRef)) return;
  const rules = access.rulesOfRole(binding.roleRef, object.metadata.namespace ?? '');
  if (rules === undefined) throw roleNotFound(binding.roleRef);
  refuseGrants(access, user, object, rules);
}

const everyRule: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

function refuseGrants(access: ApiAccess, user: User, object: AnyObject, rules: readonly PolicyRule[]): void {
  const missing = uncovered(access.rulesOf(user, object.metadata.namespace ?? ''), rules);
  if (missing.length === 0) return;
  const groups = user.groups.map((group) => JSON.stringify(group)).join(' ');
  const who = `user ${JSON.stringify(user.name)} (groups=[${groups}])`;
  const what = missing.slice(0, 20).map(formatRule).join('\n');
  const rest = missing.length > 20 ? `\nand ${missing.length - 20} more` : '';
  throw escalation(object, `${who} is attempting to grant RBAC permissions not currently held:\n${what}${rest}`);
}

function escalation(object: AnyObject, why: string): StatusError {
  const { name } = object.metadata;
  const kind = pluralOf(object.kind);
  return new StatusError('Forbidden', `${kind}.${rbacGroup} ${JSON.stringify(name)} is forbidden: ${why}`, {
    details: { name, group: rbacGroup, kind },
  });
}

function roleNotFound(roleRef: RoleRef): StatusError {
  const kind = pluralOf(roleRef.kind);
  return new StatusError('NotFound', `${kind}.${rbacGroup} ${JSON.stringify(roleRef.name)} not found`, {
    details: { name: roleRef.name, group: rbacGroup, kind },
  });
}

function may(access: ApiAccess, user: User, verb: string, object: AnyObject): boolean {
  const { name, namespace = '' } = object.metadata;
  return access.authorize(user, attributesOf({ verb, kind: object.kind, name, namespace })).isAllowed;
}

function mayBind(access: ApiAccess, user: User, binding: AnyObject, roleRef: RoleRef): boolean {
  const { namespace = '' } = binding.metadata;
  const attributes = attributesOf({ verb: 'bind', kind: roleRef.kind, name: roleRef.name, namespace });
  return access.authorize(user, attributes).isAllowed;
}

function attributesOf(asked: { verb: string; kind: string; name: string; namespace: string }): Attributes {
  const { verb, kind, name, namespace } = asked;
  return { verb, group: rbacGroup, version: 'v1', resource: pluralOf(kind), subresource: '', namespace, name };
}

function pluralOf(kind: string): string {
  return `${kind.toLowerCase()}s`;
}

function contentOf(role: RoleObject): unknown {
  return { rules: role.rules ?? [], aggregationRule: role.aggregationRule ?? null };
}

function asRole(object: AnyObject): RoleObject {
  return object as unknown as RoleObject;
}

function asBinding(object: AnyObject): BindingObject {
  return object as unknown as BindingObject;
}
