// The objects of one part: account, rights, workload, Service, PodDisruptionBudget, NetworkPolicy. Pure.

import { homeObjects } from '../clusterset/membership/home-objects.ts';
import { proxyObjects } from '../clusterset/membership/proxy-objects.ts';
import { type Manifest, manifest } from '../kube/objects/manifest.ts';
import type { ResourceType } from '../kube/objects/object.ts';
import { externalNamespace, systemNamespace } from '../kube/objects/ours.ts';
import {
  clusterRoleBindingType,
  clusterRoleType,
  type PolicyRule,
  roleBindingType,
  roleRefOf,
  roleType,
  type Subject,
  serviceAccountType,
} from '../kube/objects/rbac.ts';
import { serviceType } from '../kube/objects/service.ts';
import { adminPort, type Part } from './parts.ts';
import type { PartName, Values } from './values.ts';

const appsType = (kind: string, plural: string): ResourceType => ({
  group: 'apps',
  version: 'v1',
  plural,
  kind,
  isNamespaced: true,
});
const workloadTypes = {
  Deployment: appsType('Deployment', 'deployments'),
  DaemonSet: appsType('DaemonSet', 'daemonsets'),
};
const budgetType: ResourceType = {
  group: 'policy',
  version: 'v1',
  plural: 'poddisruptionbudgets',
  kind: 'PodDisruptionBudget',
  isNamespaced: true,
};
const networkPolicyType: ResourceType = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'networkpolicies',
  kind: 'NetworkPolicy',
  isNamespaced: true,
};

export function objectsOfPart(part: Part, values: Values): Manifest[] {
  return [
    ...rightsOf(part),
    workloadOf(part, values),
    ...(part.service === undefined ? [] : [serviceOf(part, part.service.clusterIP)]),
    ...(part.workload === 'Deployment' ? [budgetOf(part)] : []),
    networkPolicyOf(part),
  ];
}

function nameOf({ name }: Part): { readonly name: string; readonly namespace: string } {
  return { name: `portolan-${name}`, namespace: systemNamespace };
}

function labelsOf({ name }: Part): Record<string, string> {
  return { 'app.kubernetes.io/name': 'portolan', 'app.kubernetes.io/component': name };
}

/** Parts that also run where there are no Pods have their account and rights in deploy/manifests. */
const rightsElsewhere: Partial<Record<PartName, () => Manifest[]>> = { agent: homeObjects, proxy: proxyObjects };

function rightsOf(part: Part): Manifest[] {
  const written = rightsElsewhere[part.name];
  if (written !== undefined) return written().filter(({ type }) => type.kind !== 'Namespace');
  const place = nameOf(part);
  const self: Subject = { kind: 'ServiceAccount', ...place };
  const everywhere = { name: `portolan:${part.name}` };
  const inCluster = (rules: readonly PolicyRule[]) => [
    manifest(clusterRoleType, everywhere, { rules }),
    manifest(clusterRoleBindingType, everywhere, {
      subjects: [self],
      roleRef: roleRefOf('ClusterRole', everywhere.name),
    }),
  ];
  const external = { ...place, namespace: externalNamespace };
  const inExternal = (rules: readonly PolicyRule[]) => [
    manifest(roleType, external, { rules }),
    manifest(roleBindingType, external, { subjects: [self], roleRef: roleRefOf('Role', place.name) }),
  ];
  return [
    manifest(serviceAccountType, place, {}),
    ...(part.clusterRules.length === 0 ? [] : inCluster(part.clusterRules)),
    manifest(roleType, place, { rules: part.systemRules }),
    manifest(roleBindingType, place, { subjects: [self], roleRef: roleRefOf('Role', place.name) }),
    ...(part.externalRules === undefined ? [] : inExternal(part.externalRules)),
  ];
}

function workloadOf(part: Part, values: Values): Manifest {
  const labels = labelsOf(part);
  const template = { metadata: { labels }, spec: podSpec(part, values) };
  return manifest(
    workloadTypes[part.workload],
    { ...nameOf(part), labels },
    {
      spec: {
        replicas: part.replicas,
        selector: { matchLabels: labels },
        template,
      },
    },
  );
}

function podSpec(part: Part, values: Values): object {
  const { isOnHostNetwork } = part;
  return {
    serviceAccountName: `portolan-${part.name}`,
    priorityClassName: isOnHostNetwork ? 'system-node-critical' : 'system-cluster-critical',
    ...(isOnHostNetwork ? { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' } : {}),
    securityContext: podSecurity(part),
    containers: [container(part, values)],
    volumes: [
      { name: 'state', emptyDir: {} },
      { name: 'tmp', emptyDir: {} },
      ...(part.secret === undefined ? [] : [{ name: 'secret', secret: { secretName: part.secret } }]),
    ],
    ...(isOnHostNetwork ? { tolerations: [{ operator: 'Exists' }] } : { topologySpreadConstraints: spreadOf(part) }),
  };
}

function podSecurity(part: Part): object {
  const isOnPort53 = part.ports.some(({ port }) => port === 53);
  // nft needs root with CAP_NET_ADMIN; everything else runs without any right over its node.
  if (part.isOnHostNetwork) return { runAsUser: 0, seccompProfile: { type: 'RuntimeDefault' } };
  return {
    runAsNonRoot: true,
    runAsUser: 65532,
    fsGroup: 65532,
    seccompProfile: { type: 'RuntimeDefault' },
    ...(isOnPort53 ? { sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '53' }] } : {}),
  };
}

function container(part: Part, values: Values): object {
  const { cpu, memory } = values[part.name];
  const probe = (path: string) => ({ httpGet: { path, port: 'admin' }, periodSeconds: 10, timeoutSeconds: 3 });
  const adminHost = part.isOnHostNetwork ? '$(HOST_IP)' : '0.0.0.0';
  return {
    name: part.name,
    image: values.image,
    args: [...part.args, '--admin-listen', `${adminHost}:${adminPort}`, '--log-level', values.logLevel],
    env: [
      fieldVariable('NODE_NAME', 'spec.nodeName'),
      ...(part.isOnHostNetwork ? [fieldVariable('HOST_IP', 'status.hostIP')] : []),
      // Three quarters of the limit for the heap; the rest is for buffers, threads and code.
      { name: 'NODE_OPTIONS', value: '--max-old-space-size-percentage=75' },
    ],
    ports: [
      { name: 'admin', containerPort: adminPort, protocol: 'TCP' },
      ...part.ports.map(({ name, port, protocol }) => ({ name, containerPort: port, protocol })),
    ],
    livenessProbe: { ...probe('/livez'), failureThreshold: 6 },
    readinessProbe: probe('/readyz'),
    resources: { requests: { cpu, memory }, limits: { memory } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'], ...(part.isOnHostNetwork ? { add: ['NET_ADMIN'] } : {}) },
    },
    volumeMounts: [
      { name: 'state', mountPath: '/var/lib/portolan' },
      { name: 'tmp', mountPath: '/tmp' },
      ...(part.secret === undefined ? [] : [{ name: 'secret', mountPath: '/etc/portolan', readOnly: true }]),
    ],
  };
}

function fieldVariable(name: string, fieldPath: string): object {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

function spreadOf(part: Part): object[] {
  return ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: labelsOf(part) },
  }));
}

function serviceOf(part: Part, clusterIP: string): Manifest {
  const ports = part.ports.map(({ name, port, protocol }) => ({ name, port, targetPort: name, protocol }));
  return manifest(
    serviceType,
    { ...nameOf(part), labels: labelsOf(part) },
    {
      spec: { selector: labelsOf(part), ports, ...(clusterIP === '' ? {} : { clusterIP }) },
    },
  );
}

function budgetOf(part: Part): Manifest {
  return manifest(budgetType, nameOf(part), { spec: { maxUnavailable: 1, selector: { matchLabels: labelsOf(part) } } });
}

/** Only the ports that it serves can be reached. */
function networkPolicyOf(part: Part): Manifest {
  const ports = [{ port: adminPort, protocol: 'TCP' }, ...part.ports.map(({ port, protocol }) => ({ port, protocol }))];
  return manifest(networkPolicyType, nameOf(part), {
    spec: { podSelector: { matchLabels: labelsOf(part) }, policyTypes: ['Ingress'], ingress: [{ ports }] },
  });
}
