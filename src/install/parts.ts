// Each part of an installation: what it runs, which rights it has in the cluster and in portolan-system, which ports it
// opens, and what it may do to its node. Pure.

import { resolverAuthoritySecret } from '../clusterset/membership/resolver-authority.ts';
import { gatewayName } from '../clusterset/rules/networks/gateway-report.ts';
import { ticketRule } from '../kube/objects/admin-ticket.ts';
import {
  externalNamespace,
  gatewayAuthoritySecret,
  peeringAuthoritySecret,
  peeringCertificateSecret,
  peeringNamespace,
  stubZonesName,
  xdsAuthoritySecret,
  xdsNamespace,
  xdsRootsName,
} from '../kube/objects/ours.ts';
import { type PolicyRule, readVerbs, writeVerbs } from '../kube/objects/rbac.ts';
import { flagForEach, whenSet } from './marks.ts';
import type { PartName, Values } from './values.ts';

export const adminPort = 9465;

/** Stays while a container is restarted in its Pod. */
const stateFolder = '/var/lib/portolan';

/** For stub zones. */
const stubPort = 8553;

export type EnvoyRole = 'ingress' | 'gateway' | 'sidecar';

interface Port {
  readonly name: string;
  readonly port: number;
  readonly protocol: 'TCP' | 'UDP';
}

export interface Part {
  readonly name: PartName;
  /** Either, where the values decide. */
  readonly workload: 'Deployment' | 'DaemonSet' | 'either';
  /** Undefined for a DaemonSet. */
  readonly replicas: number | undefined;
  readonly args: readonly string[];
  /** Besides the admin endpoint. */
  readonly ports: readonly Port[];
  /** Rights in every namespace. */
  readonly clusterRules: readonly PolicyRule[];
  /** Rights in portolan-system. */
  readonly systemRules: readonly PolicyRule[];
  /** Rights in other namespaces of ours. */
  readonly rulesElsewhere?: readonly { readonly namespace: string; readonly rules: readonly PolicyRule[] }[];
  /** Runs in the network of its node. */
  readonly isOnHostNetwork: boolean;
  /** An Envoy of that role; its configuration comes from `portolan xds`. */
  readonly envoyRole?: EnvoyRole;
  /** Has no admin endpoint; a connection to its first port is its probe. */
  readonly isWithoutAdmin?: boolean;
  /** portolan-PART unless given. */
  readonly account?: string;
  /** Name of a Secret that is mounted at /etc/portolan. */
  readonly secret?: string;
  /** A port with a Service of its own, for others than this cluster, and the rights that it needs. */
  readonly outside?: OutsidePort;
  readonly service?: { readonly clusterIP?: string; readonly type?: string };
}

export interface OutsidePort {
  readonly name: string;
  readonly port: number;
  /** Type of its Service. */
  readonly type: string;
  /** Path of the value without which there is no such port. */
  readonly ifSet: string;
  /** Rights in portolan-system. */
  readonly rules: readonly PolicyRule[];
}

const own = 'portolan.dev';
/** The proxy does not redirect connections of this user. */
export const envoyUid = 1337;
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

/** Secrets that earlier versions kept in portolan-system; they are copied to a namespace without accounts. */
const formerSecrets = (...resourceNames: string[]): PolicyRule => ({
  ...{ apiGroups: [''], resources: ['secrets'], resourceNames, verbs: ['get'] },
});

/** An Envoy shows xds a token of its own, which no API server takes: it has no right at all. */
const envoyRights: Pick<Part, 'clusterRules' | 'systemRules'> = { clusterRules: [], systemRules: [] };

/** Agent and proxy also run outside Pods: their accounts and rights are those of deploy/manifests. */
export function partsOf(values: Values): Part[] {
  return [
    agentPart(values),
    dnsPart(values),
    proxyPart(values),
    peeringPart(values),
    authorityPart(values),
    xdsPart(values),
    ingressPart(values),
    envoyPart(),
    dashboardPart(values),
    gatewayPart(values),
  ];
}

function at(address: string, port: number): string {
  return `${address}:${port}`;
}

function agentPart({ agent }: Values): Part {
  return {
    name: 'agent',
    workload: 'Deployment',
    replicas: agent.replicas,
    args: ['agent'],
    ports: [],
    clusterRules: [],
    systemRules: [],
    isOnHostNetwork: false,
  };
}

function dnsPart({ dns, listenAddress }: Values): Part {
  return {
    name: 'dns',
    workload: 'either',
    replicas: dns.replicas,
    args: [
      ...[
        'dns',
        '--listen',
        at(listenAddress, 53),
        ...optional('--cluster-id', dns.clusterId),
        ...optional('--forward', dns.forward),
      ],
      ...['--state', stateFolder, '--lameduck', String(dns.lameduck), ...flagForEach('--client', dns.clients)],
      ...optional('--stub-advertise', dns.stubAdvertise),
      ...whenSet(dns.stubAdvertise, 'dns.stubAdvertise', [
        '--stub-listen',
        at(listenAddress, stubPort),
        '--stub-shared',
      ]),
    ],
    ports: dnsPorts,
    outside: {
      ...{ name: 'stub', port: stubPort, type: dns.stubServiceType, ifSet: 'dns.stubAdvertise' },
      rules: [
        // Issues the certificate of the endpoint.
        { apiGroups: [''], resources: ['secrets'], resourceNames: [resolverAuthoritySecret], verbs: ['get'] },
        // Zones that were posted to one resolver, for all of them.
        { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
        { apiGroups: [''], resources: ['configmaps'], resourceNames: [stubZonesName], verbs: ['update'] },
      ],
    },
    clusterRules: [
      read('', 'services', 'namespaces'),
      read('discovery.k8s.io', 'endpointslices'),
      read('multicluster.x-k8s.io', 'serviceimports'),
      read('about.k8s.io', 'clusterproperties'),
      read(own, 'addressclaims'),
      ticketRule,
    ],
    systemRules: [leaseRule, read('', 'configmaps'), read(own, 'peerservices', 'meshexternalservices')],
    isOnHostNetwork: false,
    service: { clusterIP: dns.clusterIP },
  };
}

function proxyPart({ envoy, proxy }: Values): Part {
  return {
    name: 'proxy',
    workload: 'DaemonSet',
    replicas: undefined,
    args: [
      'proxy',
      ...whenSet(proxy.services, 'proxy.services', ['--services']),
      ...whenSet(envoy.enabled, 'envoy.enabled', ['--envoy', '--envoy-uid', String(envoyUid)]),
    ],
    ports: [],
    clusterRules: [],
    systemRules: [],
    isOnHostNetwork: true,
  };
}

function peeringPart({ peering, listenAddress }: Values): Part {
  return {
    name: 'peering',
    workload: 'Deployment',
    replicas: peering.replicas,
    args: [
      'peering',
      ...['--trust-domain', peering.trustDomain, '--advertise', peering.advertise],
      ...['--listen', at(listenAddress, 8008), '--replicated', '--secrets-namespace', peeringNamespace],
    ],
    ports: [{ name: 'peering', port: 8008, protocol: 'TCP' }],
    clusterRules: [
      read('', 'services'),
      read('multicluster.x-k8s.io', 'serviceimports'),
      read(own, 'peerexports'),
      { apiGroups: [own], resources: ['peerexports/status'], verbs: ['patch'] },
      { apiGroups: [own], resources: ['addressclaims'], verbs: [...readVerbs, ...writeVerbs] },
      ticketRule,
    ],
    systemRules: [
      // Those of xDS servers and proxies show whether Envoys carry connections.
      { ...leaseRule, verbs: [...readVerbs, 'create', 'update', 'delete'] },
      // It makes its namespace where there is none.
      { apiGroups: [''], resources: ['namespaces'], resourceNames: ['portolan-system'], verbs: ['get'] },
      // Its card, for peers that are introduced.
      { apiGroups: [''], resources: ['configmaps'], verbs: [...readVerbs, 'create', 'update'] },
      formerSecrets(peeringAuthoritySecret, peeringCertificateSecret),
      { apiGroups: [own], resources: ['peers'], verbs: [...readVerbs, 'create'] },
      { apiGroups: [own], resources: ['peerservices'], verbs: [...readVerbs, ...writeVerbs, 'deletecollection'] },
      { apiGroups: [own], resources: ['peers/status', 'peerservices/status'], verbs: ['patch'] },
    ],
    rulesElsewhere: [
      // Its certificate and authority; introductions, which are used once; what Peers name.
      {
        namespace: peeringNamespace,
        rules: [{ apiGroups: [''], resources: ['secrets'], verbs: [...readVerbs, 'create', 'patch', 'delete'] }],
      },
    ],
    isOnHostNetwork: false,
    service: { type: peering.serviceType },
  };
}

function authorityPart({ authority, listenAddress }: Values): Part {
  return {
    name: 'authority',
    workload: 'Deployment',
    replicas: authority.replicas,
    args: [
      'authority',
      ...[
        '--federation',
        authority.federation,
        '--clusterset',
        authority.clusterset,
        '--listen',
        at(listenAddress, 53),
      ],
      ...['--broker-kubeconfig', '/etc/portolan/kubeconfig', '--broker-kubeconfig-from', authority.brokerSecret],
      ...['--state', stateFolder],
    ],
    ports: dnsPorts,
    // It reads and reports at the broker, with the account that portolan federation kubeconfig makes there. Here it keeps
    // the token of that account.
    clusterRules: [],
    systemRules: [
      { apiGroups: [''], resources: ['secrets'], resourceNames: [authority.brokerSecret], verbs: ['get', 'update'] },
    ],
    isOnHostNetwork: false,
    secret: authority.brokerSecret,
    service: { type: authority.serviceType },
  };
}

function xdsPart({ xds, listenAddress }: Values): Part {
  return {
    name: 'xds',
    workload: 'Deployment',
    replicas: xds.replicas,
    args: [
      ...['xds', '--listen', at(listenAddress, 15_010), '--host', 'portolan-xds.portolan-system.svc'],
      ...['--secrets-namespace', xdsNamespace, '--peering-namespace', peeringNamespace],
    ],
    ports: [{ name: 'xds', port: 15010, protocol: 'TCP' }],
    clusterRules: [
      read('', 'services'),
      read('discovery.k8s.io', 'endpointslices'),
      read('multicluster.x-k8s.io', 'serviceexports', 'serviceimports'),
      read('about.k8s.io', 'clusterproperties'),
      read(own, 'peerexports', 'addressclaims'),
      // Which workloads run on the node of a proxy: some client keys are for those alone.
      read('', 'pods'),
      { apiGroups: [''], resources: ['services/status'], verbs: ['update'] },
      { apiGroups: ['multicluster.x-k8s.io'], resources: ['serviceimports/status'], verbs: ['update'] },
      { apiGroups: [own], resources: ['peerexports/status'], verbs: ['update'] },
      ticketRule,
    ],
    systemRules: [
      { ...leaseRule, verbs: [...readVerbs, 'create', 'update', 'delete'] },
      read('', 'configmaps'),
      // Its roots, which Pods of Envoys mount.
      { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
      // And those of this cluster's trust domain, which the agent reports.
      { apiGroups: [''], resources: ['configmaps'], resourceNames: [xdsRootsName, gatewayName], verbs: ['update'] },
      formerSecrets(xdsAuthoritySecret),
      read(own, 'peers', 'peerservices', 'meshexternalservices'),
      {
        apiGroups: [own],
        resources: ['peers/status', 'peerservices/status', 'meshexternalservices/status'],
        verbs: ['update'],
      },
    ],
    rulesElsewhere: [
      { namespace: externalNamespace, rules: [read('', 'secrets')] },
      {
        namespace: xdsNamespace,
        rules: [
          { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create'] },
          { apiGroups: [''], resources: ['secrets'], resourceNames: [gatewayAuthoritySecret], verbs: ['update'] },
        ],
      },
      { namespace: peeringNamespace, rules: [read('', 'secrets')] },
    ],
    isOnHostNetwork: false,
    service: {},
  };
}

function ingressPart({ ingress }: Values): Part {
  return {
    name: 'ingress',
    workload: 'Deployment',
    replicas: ingress.replicas,
    args: [],
    ports: [{ name: 'peers', port: 15443, protocol: 'TCP' }],
    ...envoyRights,
    isOnHostNetwork: false,
    envoyRole: 'ingress',
    service: { type: ingress.serviceType },
  };
}

function envoyPart(): Part {
  return {
    name: 'envoy',
    workload: 'DaemonSet',
    replicas: undefined,
    args: [],
    ports: [{ name: 'redirected', port: 15003, protocol: 'TCP' }],
    ...envoyRights,
    isOnHostNetwork: true,
    envoyRole: 'sidecar',
  };
}

function dashboardPart({ dashboard, listenAddress }: Values): Part {
  return {
    name: 'dashboard',
    workload: 'Deployment',
    // Sessions are known to one process only.
    replicas: 1,
    args: [
      ...['dashboard', '--listen', at(listenAddress, 8420), '--host', dashboard.host],
      ...['--tls-certificate', '/etc/portolan/tls.crt', '--tls-key', '/etc/portolan/tls.key'],
    ],
    ports: [{ name: 'https', port: 8420, protocol: 'TCP' }],
    // Users sign in with a token of their own; portolan-dashboard is the account that `dashboard token` makes for
    // that.
    account: 'portolan-dashboard-server',
    clusterRules: [],
    systemRules: [],
    isOnHostNetwork: false,
    isWithoutAdmin: true,
    secret: dashboard.tlsSecret,
    service: {},
  };
}

function gatewayPart({ gateway }: Values): Part {
  return {
    name: 'gateway',
    workload: 'Deployment',
    replicas: gateway.replicas,
    args: [],
    ports: [{ name: 'gateway', port: 15443, protocol: 'TCP' }],
    ...envoyRights,
    isOnHostNetwork: false,
    envoyRole: 'gateway',
    // The agent reports the addresses of this Service to the other members.
    service: { type: gateway.serviceType },
  };
}

const dnsPorts: readonly Port[] = [
  { name: 'dns', port: 53, protocol: 'UDP' },
  { name: 'dns-tcp', port: 53, protocol: 'TCP' },
];

function optional(flag: string, value: string): string[] {
  return value === '' ? [] : [flag, value];
}
