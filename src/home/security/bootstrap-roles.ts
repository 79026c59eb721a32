// The roles and bindings every home has from its first start: Kubernetes' own names where people know them, and no more
// than is needed. Data only; writing them is bootstrap.ts.

import { flowReaderRole, flowReaderRules } from '../../kube/objects/admin-ticket.ts';
import type { BindingObject, RoleObject } from './rbac-index.ts';
import type { PolicyRule } from './rules.ts';

export interface BootstrapRole extends RoleObject {
  readonly kind: 'ClusterRole';
}

export interface BootstrapBinding extends BindingObject {
  readonly kind: 'ClusterRoleBinding';
}

const read = ['get', 'list', 'watch'];
const write = ['create', 'delete', 'deletecollection', 'patch', 'update'];
const group = 'rbac.authorization.k8s.io';
const mcs = 'multicluster.x-k8s.io';
const scaled = ['deployments', 'replicasets', 'statefulsets'];
const workloads = [...scaled, ...scaled.map((plural) => `${plural}/scale`), 'daemonsets'];
const replicationControllers = ['replicationcontrollers', 'replicationcontrollers/scale'];
const labels = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };

export const bootstrapRoles: readonly BootstrapRole[] = [
  role('cluster-admin', [
    { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
    { verbs: ['*'], nonResourceURLs: ['*'] },
  ]),
  aggregate('admin'),
  aggregate('edit', ['admin']),
  aggregate('view', ['edit']),
  role(
    'system:aggregate-to-admin',
    [
      { verbs: [...read, ...write], apiGroups: [group], resources: ['roles', 'rolebindings'] },
      { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['localsubjectaccessreviews'] },
    ],
    ['admin'],
  ),
  role(
    'system:aggregate-to-edit',
    [
      {
        verbs: write,
        apiGroups: [''],
        resources: [
          ...[
            'configmaps',
            'events',
            'pods',
            'podtemplates',
            'secrets',
            'serviceaccounts',
            'services',
            'services/proxy',
          ],
          ...replicationControllers,
        ],
      },
      { verbs: read, apiGroups: [''], resources: ['secrets'] },
      { verbs: ['impersonate'], apiGroups: [''], resources: ['serviceaccounts'] },
      { verbs: ['create'], apiGroups: [''], resources: ['serviceaccounts/token'] },
      { verbs: write, apiGroups: ['apps'], resources: workloads },
      { verbs: write, apiGroups: ['networking.k8s.io'], resources: ['ingresses', 'networkpolicies'] },
      { verbs: write, apiGroups: ['policy'], resources: ['poddisruptionbudgets'] },
      { verbs: [...read, ...write], apiGroups: ['coordination.k8s.io'], resources: ['leases'] },
      // Exporting is a service owner's decision; imports are written by controllers alone.
      { verbs: write, apiGroups: [mcs], resources: ['serviceexports'] },
    ],
    ['edit'],
  ),
  role(
    'system:aggregate-to-view',
    [
      {
        verbs: read,
        apiGroups: [''],
        resources: [
          ...[
            'configmaps',
            'events',
            'namespaces',
            'pods',
            'pods/status',
            'podtemplates',
            'serviceaccounts',
            'services',
          ],
          ...replicationControllers,
        ],
      },
      { verbs: read, apiGroups: ['apps'], resources: workloads },
      { verbs: read, apiGroups: ['networking.k8s.io'], resources: ['ingresses', 'networkpolicies'] },
      { verbs: read, apiGroups: ['policy'], resources: ['poddisruptionbudgets'] },
      { verbs: read, apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'] },
      { verbs: read, apiGroups: ['events.k8s.io'], resources: ['events'] },
      { verbs: read, apiGroups: [mcs], resources: ['serviceexports', 'serviceimports'] },
      { verbs: read, apiGroups: ['portolan.dev'], resources: ['*'] },
    ],
    ['view'],
  ),
  role('system:discovery', [
    {
      verbs: ['get'],
      nonResourceURLs: ['/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*', '/version', '/version/'],
    },
  ]),
  role('system:service-account-issuer-discovery', [
    { verbs: ['get'], nonResourceURLs: ['/.well-known/openid-configuration', '/openid/v1/jwks'] },
  ]),
  role('system:public-info-viewer', [{ verbs: ['get'], nonResourceURLs: ['/version', '/version/'] }]),
  role('system:monitoring', [
    {
      verbs: ['get'],
      nonResourceURLs: ['/healthz', '/healthz/*', '/livez', '/livez/*', '/metrics', '/readyz', '/readyz/*'],
    },
  ]),
  // Bound to nobody. As good as cluster-admin: a snapshot has all Secrets and the key of the certificate authority.
  role('portolan:snapshot', [{ verbs: ['get', 'post'], nonResourceURLs: ['/snapshots'] }]),
  // Bound to nobody: who sees connections is decided for each home.
  role(flowReaderRole, flowReaderRules),
  role('system:basic-user', [
    {
      verbs: ['create'],
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
    },
    { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
  ]),
  role('system:auth-delegator', [
    { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'] },
    { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'] },
  ]),
];

// Nothing is bound to those who do not say who they are: health checks are open to them without any rule.
export const bootstrapBindings: readonly BootstrapBinding[] = [
  binding('cluster-admin', 'system:masters'),
  binding('system:basic-user', 'system:authenticated'),
  binding('system:discovery', 'system:authenticated'),
  binding('system:monitoring', 'system:monitoring'),
  binding('system:public-info-viewer', 'system:authenticated'),
  binding('system:service-account-issuer-discovery', 'system:serviceaccounts'),
];

function metadata(name: string, partOf: readonly string[] = []) {
  const aggregation = partOf.map((parent) => [`${group}/aggregate-to-${parent}`, 'true']);
  return { name, labels: { ...labels, ...Object.fromEntries(aggregation) } };
}

function role(name: string, rules: readonly PolicyRule[], partOf?: readonly string[]): BootstrapRole {
  return { kind: 'ClusterRole', metadata: metadata(name, partOf), rules };
}

function aggregate(name: string, partOf?: readonly string[]): BootstrapRole {
  const matchLabels = { [`${group}/aggregate-to-${name}`]: 'true' };
  return {
    kind: 'ClusterRole',
    metadata: metadata(name, partOf),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels }] },
    rules: [],
  };
}

function binding(roleName: string, groupName: string): BootstrapBinding {
  return {
    kind: 'ClusterRoleBinding',
    metadata: metadata(roleName),
    subjects: [{ kind: 'Group', apiGroup: group, name: groupName }],
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: roleName },
  };
}
