// The values of an installation. The Helm chart has the same names. Pure.

import { parseHostPort } from '../base/net/host-port.ts';
import { parseIp, parseRange } from '../base/net/ip.ts';
import { clusterIdProblem } from '../clusterset/rules/broker-layout.ts';

export const partNames = [
  'agent',
  'dns',
  'proxy',
  'peering',
  'authority',
  'xds',
  'ingress',
  'envoy',
  'dashboard',
  'gateway',
] as const;
export type PartName = (typeof partNames)[number];

/** The same for every part. */
interface PodValues {
  readonly cpuLimit: string;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly affinity: object;
  readonly tolerations: readonly object[];
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly extraArgs: readonly string[];
  readonly extraEnv: readonly object[];
  readonly from: readonly object[];
  readonly egress: readonly object[];
}

export interface PartValues extends PodValues {
  readonly enabled: boolean;
  readonly cpu: string;
  readonly memory: string;
}

export interface Values {
  /** With a tag or a digest it is pinned; without, the version of the installation is its tag. */
  readonly image: string;
  readonly imagePullPolicy: string;
  readonly imagePullSecrets: readonly object[];
  /** Image of the ingress, the gateway and the node Envoys. */
  readonly envoyImage: string;
  readonly logLevel: string;
  /** Address on which Pods listen: `[::]` where they have no IPv4 address. */
  readonly listenAddress: string;
  /** Lets the Prometheus operator scrape all parts; the cluster must have its definitions. */
  readonly serviceMonitor: boolean;
  /** Only namespaces, accounts and rights, for parts that do not run as Pods of this cluster. */
  readonly rightsOnly: boolean;
  /** Peers of network policies that may reach admin ports; empty lets everybody. */
  readonly adminFrom: readonly object[];
  readonly agent: PartValues & {
    readonly replicas: number;
    /** The right to write Services, for FederatedServices and derived Services. */
    readonly writeServices: boolean;
  };
  readonly dns: PartValues & {
    /** A DaemonSet runs on every node and has no replicas. */
    readonly workload: 'Deployment' | 'DaemonSet';
    readonly replicas: number;
    /** Address of the Service that Pods or CoreDNS ask; empty lets the cluster choose. */
    readonly clusterIP: string;
    /** Nameserver for all other names; empty answers only our own zones. */
    readonly forward: string;
    readonly clusterId: string;
    /** Ranges of clients; empty allows private and loopback addresses. */
    readonly clients: readonly string[];
    /** Seconds that a resolver goes on answering after it was told to end. */
    readonly lameduck: number;
    /** Where authorities of federations reach the resolvers to post stub zones, IP[:PORT]; empty takes none. */
    readonly stubAdvertise: string;
    /** Type of the Service behind that address. */
    readonly stubServiceType: string;
  };
  readonly proxy: PartValues & {
    /** Whether it carries the cluster IPs of Services, on nodes without kube-proxy. */
    readonly services: boolean;
  };
  readonly peering: PartValues & {
    readonly replicas: number;
    readonly trustDomain: string;
    /** How peers reach this mesh, HOST:PORT. */
    readonly advertise: string;
    /** Type of the Service behind that address. */
    readonly serviceType: string;
  };
  readonly authority: PartValues & {
    readonly replicas: number;
    readonly federation: string;
    readonly clusterset: string;
    /** A Secret whose key `kubeconfig` leads to the broker. */
    readonly brokerSecret: string;
    /** Type of the Service that the resolvers of members ask. */
    readonly serviceType: string;
  };
  readonly xds: PartValues & { readonly replicas: number };
  /** The Envoy that takes connections of peers. */
  readonly ingress: PartValues & { readonly replicas: number; readonly serviceType: string };
  /** The Envoy of each node, for external services and services of peers. */
  readonly envoy: PartValues;
  /** The Envoy that takes connections of clusters in other networks. */
  readonly gateway: PartValues & {
    readonly replicas: number;
    readonly serviceType: string;
    /** Seconds that a gateway waits at most for its connections after it was told to end. */
    readonly drainSeconds: number;
  };
  readonly dashboard: PartValues & {
    /** A Secret with `tls.crt` and `tls.key`. */
    readonly tlsSecret: string;
    /** Its name in browsers. */
    readonly host: string;
  };
}

const pod: PodValues = {
  cpuLimit: '',
  nodeSelector: {},
  affinity: {},
  tolerations: [],
  podAnnotations: {},
  extraArgs: [],
  extraEnv: [],
  from: [],
  egress: [{}],
};

export const defaultValues: Values = {
  image: 'portolan',
  imagePullPolicy: '',
  imagePullSecrets: [],
  envoyImage: 'docker.io/envoyproxy/envoy:distroless-v1.40.0',
  logLevel: 'info',
  listenAddress: '0.0.0.0',
  serviceMonitor: false,
  rightsOnly: false,
  adminFrom: [],
  agent: { enabled: true, replicas: 2, cpu: '50m', memory: '192Mi', writeServices: false, ...pod },
  dns: {
    enabled: true,
    workload: 'Deployment',
    replicas: 2,
    cpu: '100m',
    memory: '256Mi',
    clusterIP: '',
    forward: '',
    clusterId: '',
    clients: [],
    lameduck: 5,
    stubAdvertise: '',
    stubServiceType: 'LoadBalancer',
    ...pod,
  },
  proxy: { enabled: true, cpu: '50m', memory: '192Mi', services: false, ...pod },
  peering: {
    enabled: false,
    replicas: 2,
    cpu: '50m',
    memory: '256Mi',
    trustDomain: '',
    advertise: '',
    serviceType: 'LoadBalancer',
    ...pod,
  },
  authority: {
    enabled: false,
    replicas: 2,
    cpu: '100m',
    memory: '256Mi',
    federation: '',
    clusterset: 'clusterset',
    brokerSecret: 'portolan-authority-broker',
    serviceType: 'LoadBalancer',
    ...pod,
  },
  xds: { enabled: false, replicas: 2, cpu: '100m', memory: '256Mi', ...pod },
  ingress: { enabled: false, replicas: 2, cpu: '100m', memory: '128Mi', serviceType: 'LoadBalancer', ...pod },
  envoy: { enabled: false, cpu: '100m', memory: '128Mi', ...pod },
  gateway: {
    enabled: false,
    replicas: 2,
    cpu: '100m',
    memory: '256Mi',
    serviceType: 'LoadBalancer',
    drainSeconds: 30,
    ...pod,
  },
  dashboard: { enabled: false, cpu: '50m', memory: '192Mi', tlsSecret: 'portolan-dashboard-tls', host: '', ...pod },
};

export const pullPolicies: readonly string[] = ['', 'Always', 'IfNotPresent', 'Never'];
export const workloadKinds = ['Deployment', 'DaemonSet'] as const;
export const serviceTypes: readonly string[] = ['LoadBalancer', 'NodePort', 'ClusterIP'];
export const logLevels: readonly string[] = ['debug', 'info', 'warn', 'error'];
export const listenAddresses: readonly string[] = ['0.0.0.0', '[::]'];

/** Everything that is wrong with the values, each with its path; empty if nothing is. */
export function valueProblems(values: Values): string[] {
  const { dns, logLevel, listenAddress } = values;
  const problems = partNames.flatMap((name) => partProblems(name, values[name]));
  const oneOf = (path: string, value: string, allowed: readonly string[]) => {
    if (!allowed.includes(value)) problems.push(`${path}: ${value} is none of ${allowed.join(', ')}`);
  };
  oneOf('logLevel', logLevel, logLevels);
  oneOf('listenAddress', listenAddress, listenAddresses);
  if (!pullPolicies.includes(values.imagePullPolicy))
    problems.push(`imagePullPolicy: ${values.imagePullPolicy} is none of ${pullPolicies.slice(1).join(', ')}`);
  for (const name of ['image', 'envoyImage'] as const)
    if (values[name].includes('@') && !digestPattern.test(values[name]))
      problems.push(`${name}: ${values[name]} has no digest behind its @; expected sha256: and 64 hexadecimal digits`);
  if (dns.enabled) oneOf('dns.workload', dns.workload, workloadKinds);
  for (const name of ['peering', 'authority', 'ingress', 'gateway'] as const)
    if (values[name].enabled) oneOf(`${name}.serviceType`, values[name].serviceType, serviceTypes);
  const idProblem = dns.enabled && dns.clusterId !== '' ? clusterIdProblem(dns.clusterId) : undefined;
  if (idProblem !== undefined) problems.push(`dns.clusterId: ${dns.clusterId}: ${idProblem}`);
  for (const range of dns.enabled ? dns.clients : [])
    if (typeof range !== 'string' || parseRange(range) === undefined)
      problems.push(`dns.clients: ${JSON.stringify(range)} is no address or range such as 10.0.0.0/8`);
  if (!(Number.isInteger(dns.lameduck) && dns.lameduck >= 0 && dns.lameduck <= lameduckMax))
    problems.push(`dns.lameduck: ${dns.lameduck} is no number of seconds from 0 to ${lameduckMax}`);
  const { drainSeconds } = values.gateway;
  if (!(Number.isInteger(drainSeconds) && drainSeconds >= 0 && drainSeconds <= drainSecondsMax))
    problems.push(`gateway.drainSeconds: ${drainSeconds} is no number of seconds from 0 to ${drainSecondsMax}`);
  if (dns.enabled && dns.clusterIP !== '' && parseIp(dns.clusterIP) === undefined)
    problems.push(`dns.clusterIP: ${dns.clusterIP} is no IP address`);
  if (dns.enabled) oneOf('dns.stubServiceType', dns.stubServiceType, serviceTypes);
  if (dns.enabled && dns.stubAdvertise !== '' && parseIp(parseHostPort(dns.stubAdvertise, 0)?.host ?? '') === undefined)
    problems.push(`dns.stubAdvertise: ${dns.stubAdvertise} is no IP address, with a port or without`);
  return [
    ...problems,
    ...contradictions.filter(({ holds }) => holds(values)).map(({ path, why }) => `${path}: ${why}`),
  ];
}

/** NAME@DIGEST, with a tag before it or without: what is pulled is then what was looked at, whatever the tag becomes. */
const digestPattern = /^[^@]+@sha256:[0-9a-f]{64}$/;

function partProblems(name: PartName, part: PartValues & { readonly replicas?: number }): string[] {
  if (!part.enabled) return [];
  const problems: string[] = [];
  if (part.replicas !== undefined && !(Number.isInteger(part.replicas) && part.replicas > 0))
    problems.push(`${name}.replicas: ${part.replicas} is not a number above 0`);
  if (part.cpuLimit !== '' && !cpuPattern.test(part.cpuLimit))
    problems.push(`${name}.cpuLimit: ${part.cpuLimit} is no quantity such as 500m`);
  for (const word of part.extraArgs)
    if (typeof word !== 'string') problems.push(`${name}.extraArgs: ${JSON.stringify(word)} is no text`);
  if (!cpuPattern.test(part.cpu)) problems.push(`${name}.cpu: ${part.cpu} is no quantity such as 100m`);
  if (!memoryPattern.test(part.memory)) problems.push(`${name}.memory: ${part.memory} is no quantity such as 256Mi`);
  return problems;
}

/** With five seconds for open queries, below the 30 s that Kubernetes gives a Pod to end. */
export const lameduckMax = 20;
export const drainSecondsMax = 300;

export const cpuPattern = /^\d+(m|\.\d+)?$/;
export const memoryPattern = /^\d+(Mi|Gi)$/;

/** Values that do not go together. The chart fails on them with the same words. */
export interface Contradiction {
  readonly path: string;
  readonly why: string;
  readonly holds: (values: Values) => boolean;
  /** The same as a condition of a Helm template. */
  readonly template: string;
}

const missing = (part: PartName, field: string, why: string): Contradiction => ({
  path: `${part}.${field}`,
  why,
  holds: (values) => values[part].enabled && (values[part] as unknown as Record<string, unknown>)[field] === '',
  template: `and .Values.${part}.enabled (not .Values.${part}.${field})`,
});

const needs = (part: PartName, other: PartName, why: string): Contradiction => ({
  path: `${part}.enabled`,
  why: `${why}; enable ${other}, or disable ${part}`,
  holds: (values) => values[part].enabled && !values[other].enabled,
  template: `and .Values.${part}.enabled (not .Values.${other}.enabled)`,
});

export const contradictions: readonly Contradiction[] = [
  {
    path: 'agent.writeServices',
    why: 'only the agent writes Services; enable agent, or leave it out',
    holds: ({ agent }) => agent.writeServices && !agent.enabled,
    template: 'and .Values.agent.writeServices (not .Values.agent.enabled)',
  },
  {
    path: 'dns.stubAdvertise',
    why: 'only resolvers take stub zones; enable dns, or leave it out',
    holds: ({ dns }) => dns.stubAdvertise !== '' && !dns.enabled,
    template: 'and .Values.dns.stubAdvertise (not .Values.dns.enabled)',
  },
  {
    path: 'serviceMonitor',
    why: 'with rightsOnly there are no Pods to scrape; leave one of them out',
    holds: ({ serviceMonitor, rightsOnly }) => serviceMonitor && rightsOnly,
    template: 'and .Values.serviceMonitor .Values.rightsOnly',
  },
  needs('dns', 'agent', 'dns serves imports, which the agent writes'),
  needs('proxy', 'agent', 'the proxy serves imports, which the agent writes'),
  missing('peering', 'trustDomain', 'give the trust domain of this mesh, such as acme.example'),
  missing('peering', 'advertise', 'give the address by which peers reach this mesh, such as mesh.acme.example:8008'),
  missing('authority', 'federation', 'give the name of the federation'),
  missing('authority', 'brokerSecret', 'give the Secret with the kubeconfig of the broker'),
  missing('dashboard', 'host', 'give the name by which browsers reach it, such as portolan.acme.example'),
  missing('dashboard', 'tlsSecret', 'give the Secret with its certificate; it is served over TLS only'),
  needs('ingress', 'xds', 'the ingress gets its configuration from xds'),
  needs('ingress', 'peering', 'the ingress serves peers, which peering introduces'),
  needs('gateway', 'xds', 'the gateway gets its configuration from xds'),
  needs('envoy', 'xds', 'the Envoys of nodes get their configuration from xds'),
  needs('envoy', 'proxy', 'the proxy sends connections to the Envoy of its node'),
];
