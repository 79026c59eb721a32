// What people may do in their own namespaces, added to the roles that clusters have: who may edit a namespace may export its
// Services and shift the connections of its imports, and who may view it may read all of that. Pure.

import { serviceAccessPolicyType } from '../clusterset/kinds/service-access-policy.ts';
import { serviceExportType } from '../clusterset/kinds/service-export.ts';
import { serviceImportType } from '../clusterset/kinds/service-import.ts';
import { trafficShiftType } from '../clusterset/kinds/traffic-shift.ts';
import { flowReaderRole, flowReaderRules } from '../kube/objects/admin-ticket.ts';
import { type Manifest, manifest } from '../kube/objects/manifest.ts';
import { clusterRoleType, readVerbs } from '../kube/objects/rbac.ts';

const { group, plural: exports } = serviceExportType;
const { plural: imports } = serviceImportType;
const aggregatedTo = (...roles: readonly string[]) =>
  Object.fromEntries(roles.map((role) => [`rbac.authorization.k8s.io/aggregate-to-${role}`, 'true']));

export function namespaceRoles(): Manifest[] {
  const writes = ['create', 'update', 'patch', 'delete'];
  const shifts = { apiGroups: [trafficShiftType.group], resources: [trafficShiftType.plural] };
  const policies = { apiGroups: [serviceAccessPolicyType.group], resources: [serviceAccessPolicyType.plural] };
  const writing = [
    { apiGroups: [group], resources: [exports], verbs: writes },
    { ...shifts, verbs: writes },
  ];
  const reading = [
    { apiGroups: [group], resources: [exports, imports], verbs: [...readVerbs] },
    { ...shifts, verbs: [...readVerbs] },
    { ...policies, verbs: [...readVerbs] },
  ];
  return [
    manifest(
      clusterRoleType,
      { name: 'portolan:export-services', labels: aggregatedTo('edit', 'admin') },
      { rules: writing },
    ),
    manifest(
      clusterRoleType,
      { name: 'portolan:view-services', labels: aggregatedTo('view', 'edit', 'admin') },
      { rules: reading },
    ),
    // Part of no other role: who may export does not decide who may call, unless an admin binds it.
    manifest(clusterRoleType, { name: 'portolan:limit-callers' }, { rules: [{ ...policies, verbs: writes }] }),
    // To be bound in portolan-system.
    manifest(clusterRoleType, { name: flowReaderRole }, { rules: [...flowReaderRules] }),
  ];
}
