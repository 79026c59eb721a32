// The objects of a broker: those of a clusterset, and those that make a cluster its member. The same on the embedded
// broker and on a Kubernetes: rights are plain RBAC, by namespace. Pure.
//
// Everything of a member is owned by the member's namespace, so that who may delete that namespace, the member itself
// and the admin, takes all the rest along with it.

import { leaseType } from '../../kube/objects/lease.ts';
import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import type { OwnerReference } from '../../kube/objects/object.ts';
import {
  accountsOf,
  clusterRoleBindingType,
  clusterRoleType,
  type PolicyRule,
  readVerbs,
  roleBindingType,
  roleRefOf,
  roleType,
  type Subject,
  serviceAccountType,
  writeVerbs,
} from '../../kube/objects/rbac.ts';
import { bytesResource, type ResourceQuota, resourceQuotaType } from '../../kube/objects/resource-quota.ts';
import { type ClusterSpec, clusterType } from '../kinds/cluster.ts';
import { profilesSetLabel } from '../kinds/cluster-profile.ts';
import { type ClusterSetSpec, clusterSetDefaults, clusterSetType, type MemberQuota } from '../kinds/cluster-set.ts';
import {
  clusterIdAnnotation,
  clusterSetLabel,
  joinSecretName,
  leaderLeaseName,
  memberLeaseName,
  memberNamespace,
  memberRecordName,
  memberRoleName,
  membersNamespace,
} from '../rules/broker-layout.ts';

const own = 'portolan.dev';
const mcs = 'multicluster.x-k8s.io';

/** Kinds that members read in the set's namespace and the admin writes. */
const setKinds = [
  'clusters',
  'clustersets',
  'federatedservices',
  'federations',
  'hostnamegenerators',
  'meshexternalservices',
];

export interface BrokerRequest {
  readonly clusterset: string;
  readonly spec: ClusterSetSpec;
}

export function brokerObjects({ clusterset, spec }: BrokerRequest): Manifest[] {
  const labels = { [clusterSetLabel]: clusterset };
  const writers = spec.inventory?.writers;
  const ofProfiles: Record<string, string> = writers?.length ? { [profilesSetLabel]: clusterset } : {};
  return [
    manifest(namespaceType, { name: clusterset, labels: { ...labels, ...ofProfiles } }, {}),
    manifest(namespaceType, { name: membersNamespace(clusterset), labels }, {}),
    manifest(clusterSetType, { name: clusterset, namespace: clusterset }, { spec: { ...spec, layout } }),
    ...granted('portolan-members', clusterset, [accountsOf(membersNamespace(clusterset))], setRules),
    ...recordReaderObjects(clusterset),
    ...(writers ? inventoryObjects(clusterset, writers) : []),
    ...legacyObjects(clusterset, spec.legacyNamespace),
  ];
}

/** Agents of the release before read over all namespaces if they find it. */
const layout = 'AllNamespaces';

/** The kinds of members' records. All are our own: a right to read them in all namespaces shows nothing else there. */
const recordKinds = ['serviceshards', 'endpointshards', 'sealedrecords', 'heartbeats', 'livenessreports'];

/** Members read the records of all of them with one watch for each kind. A broker serves one set alone. */
function recordReaderObjects(clusterset: string): Manifest[] {
  const name = `portolan-readers.${clusterset}`;
  const rules = [{ apiGroups: [own], resources: recordKinds, verbs: [...readVerbs] }];
  const subjects = [accountsOf(membersNamespace(clusterset))];
  return [
    manifest(clusterRoleType, { name }, { rules }),
    manifest(clusterRoleBindingType, { name }, { subjects, roleRef: roleRefOf('ClusterRole', name) }),
  ];
}

/** Where no writer is left the role stays, bound to nobody. */
function inventoryObjects(clusterset: string, writers: readonly string[]): Manifest[] {
  const accounts = membersNamespace(clusterset);
  const subjects = writers.map((name): Subject => ({ kind: 'ServiceAccount', name, namespace: accounts }));
  const rules: PolicyRule[] = [
    { apiGroups: [mcs], resources: ['clusterprofiles'], verbs: [...readVerbs, ...writeVerbs] },
    { apiGroups: [mcs], resources: ['clusterprofiles/status'], verbs: ['update'] },
    { apiGroups: [own], resources: ['clustersets/status'], resourceNames: [clusterset], verbs: ['patch'] },
  ];
  return granted('portolan-inventory', clusterset, subjects, rules);
}

const setRules: readonly PolicyRule[] = [
  { apiGroups: [own], resources: setKinds, verbs: [...readVerbs] },
  // The status of a FederatedService. People read it; as with the merged view, nothing of ours derives from it.
  { apiGroups: [own], resources: ['federatedservices/status'], verbs: ['update'] },
  // The merged view. Nothing of ours derives from it, so all members may write it.
  { apiGroups: [mcs], resources: ['serviceimports'], verbs: [...readVerbs, ...writeVerbs] },
  { apiGroups: [mcs], resources: ['serviceimports/status'], verbs: ['update'] },
];

// Older agents share one namespace of per-cluster imports: members read it, and keep their own there until all are new.
function legacyObjects(clusterset: string, namespace: string | undefined): Manifest[] {
  if (namespace === undefined) return [];
  const verbs = [...readVerbs, ...writeVerbs];
  const rules = [
    { apiGroups: [mcs], resources: ['serviceimports'], verbs },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs },
  ];
  return [
    manifest(namespaceType, { name: namespace }, {}),
    ...granted(`portolan-members.${clusterset}`, namespace, [accountsOf(membersNamespace(clusterset))], rules),
  ];
}

export interface MemberRequest {
  readonly clusterset: string;
  readonly id: string;
  readonly spec: Omit<ClusterSpec, 'namespace' | 'serviceAccountName'>;
  /** The set's; its defaults when absent. */
  readonly quota?: MemberQuota | undefined;
}

/** The namespace, which everything else of the member is owned by. */
export function memberNamespaceObject({ clusterset, id }: MemberRequest): Manifest<Namespace> {
  const name = memberNamespace(clusterset, id);
  const labels = { [clusterSetLabel]: clusterset };
  return manifest(namespaceType, { name, labels, annotations: { [clusterIdAnnotation]: id } }, {});
}

/** The member's namespace, as the owner of what it has elsewhere. */
export function memberOwner({ metadata }: Namespace): OwnerReference {
  return { apiVersion: 'v1', kind: 'Namespace', name: metadata.name, uid: metadata.uid ?? '' };
}

/** Without an owner they stay when the member's namespace goes. */
export function memberObjects(request: MemberRequest, owner?: OwnerReference): Manifest[] {
  const { clusterset, id, spec } = request;
  const accounts = membersNamespace(clusterset);
  const namespace = memberNamespace(clusterset, id);
  const self: Subject = { kind: 'ServiceAccount', name: id, namespace: accounts };
  const ownedBy = owner === undefined ? {} : { ownerReferences: [owner] };
  return [
    memberQuotaObject(request),
    ...memberRightsObjects(request, owner),
    manifest(serviceAccountType, { name: id, namespace: accounts, ...ownedBy }, {}),
    ...granted(memberRoleName(id), clusterset, [self], reportRules(id), ownedBy),
    manifest(leaseType, { name: leaderLeaseName(id), namespace: accounts, ...ownedBy }, {}),
    manifest(
      clusterType,
      { name: id, namespace: clusterset, ...ownedBy },
      { spec: { namespace, serviceAccountName: id, ...spec } },
    ),
  ];
}

/** A member's own small objects: its heartbeat, its report and its record. */
const ownObjectsMax = 100;

/** The rights in a member's namespace, its own and those of the others, and its rights to its account. */
export function memberRightsObjects(
  { clusterset, id }: Pick<MemberRequest, 'clusterset' | 'id'>,
  owner?: OwnerReference,
): Manifest[] {
  const accounts = membersNamespace(clusterset);
  const namespace = memberNamespace(clusterset, id);
  const self: Subject = { kind: 'ServiceAccount', name: id, namespace: accounts };
  return [
    ...granted('portolan-readers', namespace, [accountsOf(accounts)], readerRules),
    ...granted('portolan-member', namespace, [self], memberRules(namespace)),
    ...granted(memberRoleName(id), accounts, [self], accountRules(id), owner && { ownerReferences: [owner] }),
  ];
}

/** How much a member may write. Numbers of objects hold on any Kubernetes, bytes on the embedded broker. */
export function memberQuotaObject({ clusterset, id, quota }: MemberRequest): Manifest<ResourceQuota> {
  const { services, endpointSlices, bytes } = { ...clusterSetDefaults.memberQuota, ...quota };
  const hard = {
    'count/serviceshards.portolan.dev': String(services),
    'count/endpointshards.portolan.dev': String(endpointSlices),
    // One for each of these, and the keys of audiences.
    'count/sealedrecords.portolan.dev': String(services + endpointSlices),
    'count/heartbeats.portolan.dev': String(ownObjectsMax),
    'count/livenessreports.portolan.dev': String(ownObjectsMax),
    'count/configmaps': String(ownObjectsMax),
    [bytesResource]: bytes,
  };
  const name = 'portolan-member';
  return manifest(resourceQuotaType, { name, namespace: memberNamespace(clusterset, id) }, { spec: { hard } });
}

const readerRules: readonly PolicyRule[] = [
  { apiGroups: [''], resources: ['configmaps'], resourceNames: [memberRecordName], verbs: ['get'] },
  // For agents of the release before, which look for the Lease of a member that has no Heartbeat.
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: [memberLeaseName], verbs: ['get'] },
];

function memberRules(namespace: string): PolicyRule[] {
  return [
    {
      apiGroups: [own],
      resources: ['serviceshards', 'endpointshards', 'sealedrecords', 'livenessreports'],
      verbs: [...writeVerbs],
    },
    { apiGroups: [own], resources: ['heartbeats'], verbs: ['create', 'update'] },
    // For agents of the release before, which look once whether they have left slices of the release before that.
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
    { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
    {
      apiGroups: [''],
      resources: ['configmaps'],
      resourceNames: [memberRecordName],
      verbs: ['get', 'update'],
    },
    // Leaving: with the namespace goes everything the member has.
    { apiGroups: [''], resources: ['namespaces'], resourceNames: [namespace], verbs: ['get', 'delete'] },
  ];
}

function accountRules(id: string): PolicyRule[] {
  return [
    { apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: [id], verbs: ['create'] },
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: [leaderLeaseName(id)],
      // It creates the Lease again, by PUT, if somebody deletes it. Other names are refused, so no quota is needed.
      verbs: ['get', 'create', 'update'],
    },
    // A join token is used up by deleting what it is bound to.
    { apiGroups: [''], resources: ['secrets'], resourceNames: [joinSecretName(id)], verbs: ['delete'] },
  ];
}

/** A member reports in the status of its own Cluster where its resolver takes stub zones. */
function reportRules(id: string): PolicyRule[] {
  return [{ apiGroups: [own], resources: ['clusters/status'], resourceNames: [id], verbs: ['patch'] }];
}

function granted(
  name: string,
  namespace: string,
  subjects: Subject[],
  rules: readonly PolicyRule[],
  more: { ownerReferences?: OwnerReference[] } = {},
): Manifest[] {
  return [
    manifest(roleType, { name, namespace, ...more }, { rules: [...rules] }),
    manifest(roleBindingType, { name, namespace, ...more }, { subjects, roleRef: roleRefOf('Role', name) }),
  ];
}
