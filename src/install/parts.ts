// Each part of an installation: what it runs, which rights it has in the cluster and in portolan-system, which ports it
// opens, and what it may do to its node. Pure.

import { type PolicyRule, readVerbs, writeVerbs } from '../kube/objects/rbac.ts';
import type { PartName, Values } from './values.ts';

export const adminPort = 9465;

export interface Port {
  readonly name: string;
  readonly port: number;
  readonly protocol: 'TCP' | 'UDP';
}

export interface Part {
  readonly name: PartName;
  readonly workload: 'Deployment' | 'DaemonSet';
  /** Undefined for a DaemonSet. */
  readonly replicas: number | undefined;
  readonly args: readonly string[];
  /** Besides the admin endpoint. */
  readonly ports: readonly Port[];
  /** Rights in every namespace. */
  readonly clusterRules: readonly PolicyRule[];
  /** Rights in portolan-system. */
  readonly systemRules: readonly PolicyRule[];
  /** Rights in portolan-external. */
  readonly externalRules?: readonly PolicyRule[];
  /** Needs CAP_NET_ADMIN in the network of its node. */
  readonly isOnHostNetwork: boolean;
  /** Name of a Secret that is mounted at /etc/portolan. */
  readonly secret?: string;
  readonly service?: { readonly clusterIP: string };
}

const own = 'portolan.dev';
const read = (apiGroup: string, ...resources: string[]): PolicyRule => ({
  apiGroups: [apiGroup],
  resources,
  verbs: [...readVerbs],
});

/** Each part renews a Lease of its own. */
const leaseRule: PolicyRule = {
  apiGroups: ['coordination.k8s.io'],
  resources: ['leases'],
  verbs: ['get', 'create', 'update', 'delete'],
};

/** Agent and proxy also run outside Pods: their accounts and rights are those of deploy/manifests. */
export function partsOf(values: Values): Part[] {
  const { agent, dns, peering, authority, xds } = values;
  return [
    {
      name: 'agent',
      workload: 'Deployment',
      replicas: agent.replicas,
      args: ['agent'],
      ports: [],
      clusterRules: [],
      systemRules: [],
      isOnHostNetwork: false,
    },
    {
      name: 'dns',
      workload: 'Deployment',
      replicas: dns.replicas,
      args: ['dns', '--cluster-id', dns.clusterId, '--listen', '0.0.0.0:53', ...optional('--forward', dns.forward)],
      ports: dnsPorts,
      clusterRules: [
        read('', 'services', 'namespaces'),
        read('discovery.k8s.io', 'endpointslices'),
        read('multicluster.x-k8s.io', 'serviceimports'),
      ],
      systemRules: [leaseRule, read('', 'configmaps'), read(own, 'peerservices', 'meshexternalservices')],
      isOnHostNetwork: false,
      service: { clusterIP: dns.clusterIP },
    },
    {
      name: 'proxy',
      workload: 'DaemonSet',
      replicas: undefined,
      args: ['proxy'],
      ports: [],
      clusterRules: [],
      systemRules: [],
      isOnHostNetwork: true,
    },
    {
      name: 'peering',
      workload: 'Deployment',
      replicas: peering.replicas,
      args: [
        'peering',
        ...['--trust-domain', peering.trustDomain, '--advertise', peering.advertise],
        ...['--listen', '0.0.0.0:8008', '--replicated'],
      ],
      ports: [{ name: 'peering', port: 8008, protocol: 'TCP' }],
      clusterRules: [
        read('', 'services'),
        // It makes its namespace where there is none.
        { apiGroups: [''], resources: ['namespaces'], resourceNames: ['portolan-system'], verbs: ['get'] },
        read(own, 'peerexports'),
        { apiGroups: [own], resources: ['peerexports/status'], verbs: ['patch'] },
        { apiGroups: [own], resources: ['addressclaims'], verbs: [...readVerbs, ...writeVerbs] },
      ],
      systemRules: [
        leaseRule,
        { apiGroups: [''], resources: ['configmaps', 'secrets'], verbs: [...readVerbs, ...writeVerbs] },
        {
          apiGroups: [own],
          resources: ['peers', 'peerservices'],
          verbs: [...readVerbs, ...writeVerbs, 'deletecollection'],
        },
        { apiGroups: [own], resources: ['peers/status', 'peerservices/status'], verbs: ['patch'] },
      ],
      isOnHostNetwork: false,
      service: { clusterIP: '' },
    },
    {
      name: 'authority',
      workload: 'Deployment',
      replicas: authority.replicas,
      args: [
        'dns',
        ...['--federation', authority.federation, '--clusterset', authority.clusterset, '--listen', '0.0.0.0:53'],
        ...['--broker-kubeconfig', '/etc/portolan/kubeconfig'],
      ],
      ports: dnsPorts,
      clusterRules: [],
      systemRules: [leaseRule],
      isOnHostNetwork: false,
      secret: authority.brokerSecret,
      service: { clusterIP: '' },
    },
    {
      name: 'xds',
      workload: 'Deployment',
      replicas: xds.replicas,
      args: ['xds', '--listen', '0.0.0.0:15010', '--host', 'portolan-xds.portolan-system.svc'],
      ports: [{ name: 'xds', port: 15010, protocol: 'TCP' }],
      clusterRules: [
        read('', 'services'),
        read('discovery.k8s.io', 'endpointslices'),
        read('multicluster.x-k8s.io', 'serviceimports'),
        read('about.k8s.io', 'clusterproperties'),
        read(own, 'peerexports'),
        { apiGroups: [''], resources: ['services/status'], verbs: ['update'] },
        { apiGroups: ['multicluster.x-k8s.io'], resources: ['serviceimports/status'], verbs: ['update'] },
        { apiGroups: [own], resources: ['peerexports/status'], verbs: ['update'] },
      ],
      systemRules: [
        { ...leaseRule, verbs: [...readVerbs, 'create', 'update', 'patch', 'delete'] },
        read('', 'configmaps'),
        { apiGroups: [''], resources: ['secrets'], verbs: [...readVerbs, 'create', 'update', 'patch'] },
        read(own, 'peers', 'peerservices', 'meshexternalservices'),
        {
          apiGroups: [own],
          resources: ['peers/status', 'peerservices/status', 'meshexternalservices/status'],
          verbs: ['update'],
        },
      ],
      externalRules: [read('', 'secrets')],
      isOnHostNetwork: false,
      service: { clusterIP: '' },
    },
  ];
}

const dnsPorts: readonly Port[] = [
  { name: 'dns', port: 53, protocol: 'UDP' },
  { name: 'dns-tcp', port: 53, protocol: 'TCP' },
];

function optional(flag: string, value: string): string[] {
  return value === '' ? [] : [flag, value];
}
