// All objects of an installation, in the order in which they are written. Pure.

import { ticketAccountOf, ticketKinds } from '../kube/objects/admin-ticket.ts';
import { type Manifest, manifest } from '../kube/objects/manifest.ts';
import { namespaceType } from '../kube/objects/namespace.ts';
import {
  externalNamespace,
  peeringNamespace,
  sealingNamespace,
  systemNamespace,
  xdsNamespace,
} from '../kube/objects/ours.ts';
import { rbacGroup, serviceAccountType } from '../kube/objects/rbac.ts';
import { resourceQuotaType } from '../kube/objects/resource-quota.ts';
import { admissionObjects, isAdmission } from './admission.ts';
import { type Gated, isOpen } from './gate.ts';
import { namespaceRoles } from './namespace-roles.ts';
import { partsOf } from './parts.ts';
import { defaultValues, type PartName, type Values } from './values.ts';
import { objectsOfPart } from './workload.ts';

/** Namespaces of Secrets: nothing runs there. */
export const secretNamespaces: readonly string[] = [
  externalNamespace,
  peeringNamespace,
  sealingNamespace,
  xdsNamespace,
];

/** Objects that every installation has: namespaces, the account of those who ask parts, roles of people, admission, room for important Pods. */
export function commonObjects(): Manifest[] {
  return [
    // The proxies use the network of their nodes, which stricter levels forbid.
    manifest(
      namespaceType,
      { name: systemNamespace, labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
      {},
    ),
    ...secretNamespaces.map((name) => manifest(namespaceType, { name }, {})),
    ...ticketKinds.map((kind) => manifest(serviceAccountType, ticketAccountOf(kind), {})),
    ...namespaceRoles(),
    ...admissionObjects(),
    criticalPods(),
  ];
}

/** Some clouds allow Pods of these classes only in namespaces with a quota for them. */
function criticalPods(): Manifest {
  const values = ['system-node-critical', 'system-cluster-critical'];
  const scopeSelector = { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values }] };
  const place = { name: 'portolan-critical-pods', namespace: systemNamespace };
  return manifest(resourceQuotaType, place, { spec: { hard: { pods: '100k' }, scopeSelector } });
}

/** With what each object depends on, for templates. */
export function gatedByPart(values: Values): Map<PartName, Gated[]> {
  return new Map(partsOf(values).map((part) => [part.name, objectsOfPart(part, values)]));
}

export function objectsByPart(values: Values): Map<PartName, Manifest[]> {
  const open = (objects: Gated[]) => objects.filter((one) => isOpen(one, values)).map(({ manifest }) => manifest);
  return new Map([...gatedByPart(values)].map(([name, objects]) => [name, open(objects)]));
}

/** For any values: to find the rest of an installation. Without namespaces, which hold objects of others too. */
export function everyObject(): Manifest[] {
  const common = commonObjects().filter(({ type }) => type !== namespaceType);
  return [...common, ...[...gatedByPart(defaultValues).values()].flat().map(({ manifest: one }) => one)];
}

export function objectsOf(values: Values): Manifest[] {
  const parts = [...objectsByPart(values)].filter(([name]) => values[name].enabled);
  const objects = [...commonObjects(), ...parts.flatMap(([, own]) => own)];
  return values.rightsOnly ? objects.filter(isRight) : objects;
}

/** Whether it is there with `rightsOnly` too: a namespace, an account or its rights, admission. */
export function isRight({ type }: Manifest): boolean {
  return (
    type.group === rbacGroup || isAdmission({ type }) || type.kind === 'Namespace' || type.kind === 'ServiceAccount'
  );
}
