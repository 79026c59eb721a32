// The roles that an account holds on an API server, by its own bindings and those of its group.

import type { RoleBinding } from '../../src/kube/objects/rbac.ts';
import type { FlowHome } from './homes.ts';
import type { Granted, GrantedRule } from './unused-rights.ts';

interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules: readonly GrantedRule[];
}

export function grantedTo(home: FlowHome, account: { readonly namespace: string; readonly name: string }): Granted[] {
  const list = <T>(kinds: string): T[] => JSON.parse(home.kubectl(`get ${kinds} -A -o json`)).items;
  const roles = new Map(list<Role>('roles,clusterroles').map((role) => [keyOf(role.kind, role.metadata), role]));
  const held = list<RoleBinding>('rolebindings,clusterrolebindings').filter(({ subjects }) =>
    (subjects ?? []).some((subject) =>
      subject.kind === 'ServiceAccount'
        ? subject.name === account.name && subject.namespace === account.namespace
        : subject.name === `system:serviceaccounts:${account.namespace}`,
    ),
  );
  return held.map(({ roleRef, metadata: { namespace } }) => {
    const at = roleRef.kind === 'Role' ? { namespace } : {};
    const role = roles.get(keyOf(roleRef.kind, { name: roleRef.name, ...at }))!;
    return { role: keyOf('', { name: roleRef.name, namespace }), namespace, rules: role.rules };
  });
}

function keyOf(kind: string, { name, namespace = '' }: { readonly name: string; readonly namespace?: string }): string {
  return [kind, namespace, name].filter(Boolean).join(' ');
}
