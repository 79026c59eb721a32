// RBAC's four kinds: names, columns and checks. Whether a writer gives away more than they have is asked at admission.

import type { KubernetesObject } from '../../kube/objects/object.ts';
import { column, nameColumn, wideColumn } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import type { ApiAccess } from '../security/create-access.ts';
import { rbacGroup, refuseBindingEscalation, refuseRoleEscalation } from '../security/escalation.ts';
import type { BindingObject, RoleObject } from '../security/rbac-index.ts';
import { applyBindingDefaults, validateBinding, validateRole } from '../security/rbac-validation.ts';
import { builtinKind } from './builtin.ts';

type Role = KubernetesObject & RoleObject;
type Binding = KubernetesObject & BindingObject;

export function createRbacKinds(access: ApiAccess): Kind[] {
  return [
    roleKind(access, { kind: 'Role', plural: 'roles', isNamespaced: true }),
    roleKind(access, { kind: 'ClusterRole', plural: 'clusterroles', isNamespaced: false }),
    bindingKind(access, { kind: 'RoleBinding', plural: 'rolebindings', isNamespaced: true }),
    bindingKind(access, { kind: 'ClusterRoleBinding', plural: 'clusterrolebindings', isNamespaced: false }),
  ];
}

interface Names {
  readonly kind: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
}

function roleKind(access: ApiAccess, names: Names): Kind {
  const scope = names.isNamespaced ? 'namespace' : 'cluster';
  return builtinKind<Role>({
    group: rbacGroup,
    version: 'v1',
    ...names,
    nameRule: 'pathSegment',
    validate: (role) => validateRole(role, scope),
    behaviour: { admit: async (admission) => refuseRoleEscalation(access, admission) },
  });
}

function bindingKind(access: ApiAccess, names: Names): Kind {
  const scope = names.isNamespaced ? 'namespace' : 'cluster';
  return builtinKind<Binding>({
    group: rbacGroup,
    version: 'v1',
    ...names,
    nameRule: 'pathSegment',
    columns: [
      nameColumn,
      column<Binding>('Role', ({ roleRef }) => `${roleRef.kind}/${roleRef.name}`),
      wideColumn<Binding>('Users', (binding) => subjectNames(binding, 'User')),
      wideColumn<Binding>('Groups', (binding) => subjectNames(binding, 'Group')),
      wideColumn<Binding>('ServiceAccounts', (binding) => subjectNames(binding, 'ServiceAccount')),
    ],
    applyDefaults: applyBindingDefaults,
    validate: (binding, previous) => validateBinding(binding, previous, scope),
    behaviour: { admit: async (admission) => refuseBindingEscalation(access, admission) },
  });
}

function subjectNames(binding: BindingObject, kind: string): string {
  const subjects = (binding.subjects ?? []).filter((subject) => subject.kind === kind);
  return subjects.map(({ namespace, name }) => (kind === 'ServiceAccount' ? `${namespace}/${name}` : name)).join(', ');
}
