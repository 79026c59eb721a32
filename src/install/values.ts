// The values of an installation. The Helm chart has the same names. Pure.

import { parseIp } from '../base/ip.ts';

export const partNames = ['agent', 'dns', 'proxy', 'peering', 'authority', 'xds'] as const;
export type PartName = (typeof partNames)[number];

export interface PartValues {
  readonly enabled: boolean;
  readonly cpu: string;
  readonly memory: string;
}

export interface Values {
  readonly image: string;
  readonly logLevel: string;
  readonly agent: PartValues & { readonly replicas: number };
  readonly dns: PartValues & {
    readonly replicas: number;
    /** Address of the Service that Pods or CoreDNS ask; empty lets the cluster choose. */
    readonly clusterIP: string;
    /** Nameserver for all other names; empty answers only our own zones. */
    readonly forward: string;
    readonly clusterId: string;
  };
  readonly proxy: PartValues;
  readonly peering: PartValues & {
    readonly replicas: number;
    readonly trustDomain: string;
    /** How peers reach this mesh, HOST:PORT. */
    readonly advertise: string;
  };
  readonly authority: PartValues & {
    readonly replicas: number;
    readonly federation: string;
    readonly clusterset: string;
    /** A Secret whose key `kubeconfig` leads to the broker. */
    readonly brokerSecret: string;
  };
  readonly xds: PartValues & { readonly replicas: number };
}

export const defaultValues: Values = {
  image: 'portolan:0.1.0',
  logLevel: 'info',
  agent: { enabled: true, replicas: 2, cpu: '50m', memory: '192Mi' },
  dns: { enabled: true, replicas: 2, cpu: '100m', memory: '256Mi', clusterIP: '', forward: '', clusterId: 'cluster' },
  proxy: { enabled: true, cpu: '50m', memory: '192Mi' },
  peering: { enabled: false, replicas: 2, cpu: '50m', memory: '256Mi', trustDomain: '', advertise: '' },
  authority: {
    enabled: false,
    replicas: 2,
    cpu: '100m',
    memory: '256Mi',
    federation: '',
    clusterset: 'clusterset',
    brokerSecret: 'portolan-authority-broker',
  },
  xds: { enabled: false, replicas: 2, cpu: '100m', memory: '256Mi' },
};

/** Everything that is wrong with the values, each with its path; empty if nothing is. */
export function valueProblems(values: Values): string[] {
  const { agent, dns, peering, authority } = values;
  const problems: string[] = [];
  for (const name of partNames) {
    const part: PartValues & { readonly replicas?: number } = values[name];
    if (!part.enabled) continue;
    if (part.replicas !== undefined && !(Number.isInteger(part.replicas) && part.replicas > 0))
      problems.push(`${name}.replicas: ${part.replicas} is not a number above 0`);
    if (!/^\d+(m|\.\d+)?$/.test(part.cpu)) problems.push(`${name}.cpu: ${part.cpu} is no quantity such as 100m`);
    if (!/^\d+(Mi|Gi)$/.test(part.memory)) problems.push(`${name}.memory: ${part.memory} is no quantity such as 256Mi`);
  }
  if (dns.enabled && dns.clusterIP !== '' && parseIp(dns.clusterIP) === undefined)
    problems.push(`dns.clusterIP: ${dns.clusterIP} is no IP address`);
  if (dns.enabled && dns.clusterId === '') problems.push('dns.clusterId: give the id that the cluster joins with');
  if (!agent.enabled && (dns.enabled || values.proxy.enabled))
    problems.push('agent.enabled: dns and proxy serve imports, which the agent writes; enable it, or disable them');
  if (peering.enabled && peering.trustDomain === '')
    problems.push('peering.trustDomain: give the trust domain of this mesh, such as acme.example');
  if (peering.enabled && peering.advertise === '')
    problems.push('peering.advertise: give the address by which peers reach this mesh, such as mesh.acme.example:8008');
  if (authority.enabled && authority.federation === '')
    problems.push('authority.federation: give the name of the federation');
  return problems;
}
