// The objects of one part: account, rights, workload, Service, PodDisruptionBudget, NetworkPolicy. Pure.

import { homeObjects, serviceWriterObjects } from '../clusterset/membership/home-objects.ts';
import { proxyObjects, proxyServicesObjects } from '../clusterset/membership/proxy-objects.ts';
import { type Manifest, manifest } from '../kube/objects/manifest.ts';
import type { ResourceType } from '../kube/objects/object.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
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
import { envoyContainers, envoyVolumes } from './envoy-containers.ts';
import { always, type Gated, gated } from './gate.ts';
import { given, givenOr, itemsOf } from './marks.ts';
import { adminPort, envoyUid, type OutsidePort, type Part } from './parts.ts';
import {
  containerSecurity,
  fieldVariable,
  heapVariable,
  imageFields,
  readinessTimes,
  resolverVariables,
  resourcesOf,
  spreadOf,
  startupTimes,
} from './pod.ts';
import { monitoringOf } from './service-monitor.ts';
import type { PartName, Values } from './values.ts';

const appsType = (kind: string, plural: string): ResourceType => ({
  group: 'apps',
  version: 'v1',
  plural,
  kind,
  isNamespaced: true,
});
export const deploymentType: ResourceType = appsType('Deployment', 'deployments');
const workloadTypes = {
  Deployment: deploymentType,
  DaemonSet: appsType('DaemonSet', 'daemonsets'),
};

/** Whether objects of the kind make Pods. */
export function isWorkload({ group, kind }: ResourceType): boolean {
  return group === 'apps' && Object.hasOwn(workloadTypes, kind);
}

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

export function objectsOfPart(part: Part, values: Values): Gated[] {
  return [
    ...rightsOf(part),
    ...workloadsOf(part, values),
    ...always([...(part.service === undefined ? [] : [serviceOf(part, part.service)]), networkPolicyOf(part, values)]),
    ...(part.outside === undefined ? [] : gated({ path: part.outside.ifSet }, outsideObjects(part, part.outside))),
    ...(hasAdmin(part) ? monitoringOf(part.name, labelsOf(part)) : []),
  ];
}

/** Only Deployments have a number of Pods that a budget can hold. */
function workloadsOf(part: Part, values: Values): Gated[] {
  const deployment = () => [workloadOf(part, 'Deployment', values), budgetOf(part)];
  const daemons = () => [workloadOf(part, 'DaemonSet', values)];
  if (part.workload === 'Deployment') return always(deployment());
  if (part.workload === 'DaemonSet') return always(daemons());
  const path = `${part.name}.workload`;
  return [...gated({ path, equals: 'Deployment' }, deployment()), ...gated({ path, equals: 'DaemonSet' }, daemons())];
}

function hasAdmin({ envoyRole, isWithoutAdmin }: Part): boolean {
  return envoyRole === undefined && !isWithoutAdmin;
}

function nameOf({ name }: Part): { readonly name: string; readonly namespace: string } {
  return { name: `portolan-${name}`, namespace: systemNamespace };
}

function accountOf({ name, account = `portolan-${name}` }: Part): string {
  return account;
}

function labelsOf({ name }: Part): Record<string, string> {
  return { 'app.kubernetes.io/name': 'portolan', 'app.kubernetes.io/component': name };
}

/** Parts that also run where there are no Pods have their account and rights in deploy/manifests. */
const rightsElsewhere: Partial<Record<PartName, () => Manifest[]>> = { agent: homeObjects, proxy: proxyObjects };

function rightsOf(part: Part): Gated[] {
  const written = rightsElsewhere[part.name];
  if (written !== undefined) {
    return [
      ...always(written().filter(({ type }) => type.kind !== 'Namespace')),
      ...(part.name === 'agent'
        ? gated({ path: 'agent.writeServices', equals: true }, serviceWriterObjects())
        : gated({ path: 'proxy.services', equals: true }, proxyServicesObjects())),
    ];
  }
  const place = nameOf(part);
  const account = { ...place, name: accountOf(part) };
  const self: Subject = { kind: 'ServiceAccount', ...account };
  const everywhere = { name: `portolan:${part.name}` };
  const inCluster = (rules: readonly PolicyRule[]) => [
    manifest(clusterRoleType, everywhere, { rules }),
    manifest(clusterRoleBindingType, everywhere, {
      subjects: [self],
      roleRef: roleRefOf('ClusterRole', everywhere.name),
    }),
  ];
  const inNamespace = (namespace: string, rules: readonly PolicyRule[]) => [
    manifest(roleType, { ...place, namespace }, { rules }),
    manifest(roleBindingType, { ...place, namespace }, { subjects: [self], roleRef: roleRefOf('Role', place.name) }),
  ];
  return always([
    manifest(serviceAccountType, account, {}),
    ...(part.clusterRules.length === 0 ? [] : inCluster(part.clusterRules)),
    ...(part.systemRules.length === 0 ? [] : inNamespace(systemNamespace, part.systemRules)),
    ...(part.rulesElsewhere ?? []).flatMap(({ namespace, rules }) => inNamespace(namespace, rules)),
  ]);
}

function workloadOf(part: Part, kind: 'Deployment' | 'DaemonSet', values: Values): Manifest {
  const labels = labelsOf(part);
  const annotations = given('annotations', values[part.name].podAnnotations);
  const template = { metadata: { labels, ...annotations }, spec: podSpec(part, kind, values) };
  const replicas = kind === 'Deployment' ? part.replicas : undefined;
  return manifest(
    workloadTypes[kind],
    { ...nameOf(part), labels },
    {
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template,
      },
    },
  );
}

function podSpec(part: Part, kind: 'Deployment' | 'DaemonSet', values: Values): object {
  const { isOnHostNetwork } = part;
  const isOnEveryNode = kind === 'DaemonSet';
  const { nodeSelector, affinity, tolerations } = values[part.name];
  return {
    serviceAccountName: accountOf(part),
    ...given('imagePullSecrets', values.imagePullSecrets),
    ...given('nodeSelector', nodeSelector),
    ...given('affinity', affinity),
    priorityClassName: isOnHostNetwork ? 'system-node-critical' : 'system-cluster-critical',
    ...(isOnHostNetwork ? { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' } : {}),
    ...(part.envoyRole === undefined ? {} : { automountServiceAccountToken: false }),
    securityContext: podSecurity(part),
    ...(part.envoyRole === undefined
      ? { containers: [container(part, values)] }
      : envoyContainers(part, part.envoyRole, values)),
    volumes: [
      { name: 'state', emptyDir: {} },
      { name: 'tmp', emptyDir: {} },
      ...(part.secret === undefined ? [] : [{ name: 'secret', secret: { secretName: part.secret } }]),
      ...(part.envoyRole === undefined ? [] : envoyVolumes),
    ],
    ...(isOnEveryNode
      ? givenOr('tolerations', tolerations, [{ operator: 'Exists' }])
      : { ...given('tolerations', tolerations), topologySpreadConstraints: spreadOf(labelsOf(part)) }),
  };
}

function podSecurity(part: Part): object {
  const isOnPort53 = part.ports.some(({ port }) => port === 53);
  const seccompProfile = { type: 'RuntimeDefault' };
  // nft needs root with CAP_NET_ADMIN; everything else runs without any right over its node.
  if (mayAdministerNetwork(part)) return { runAsUser: 0, seccompProfile };
  const user = part.envoyRole === undefined ? 65532 : envoyUid;
  return {
    ...{ runAsNonRoot: true, runAsUser: user, fsGroup: user, seccompProfile },
    ...(isOnPort53 ? { sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '53' }] } : {}),
  };
}

function mayAdministerNetwork({ name }: Part): boolean {
  return name === 'proxy';
}

function container(part: Part, values: Values): object {
  const { extraArgs, extraEnv } = values[part.name];
  const ports = part.ports.map(({ name, port, protocol }) => ({ name, containerPort: port, protocol }));
  const admin = { name: 'admin', containerPort: adminPort, protocol: 'TCP' };
  return {
    name: part.name,
    ...imageFields(values),
    args: [...part.args, ...adminFlags(part, values), '--log-level', values.logLevel, ...itemsOf(extraArgs)],
    env: [
      fieldVariable('NODE_NAME', 'spec.nodeName'),
      // The API server's own proxy leads to the admin endpoint by it.
      fieldVariable('POD_NAME', 'metadata.name'),
      ...(part.isOnHostNetwork ? [fieldVariable('HOST_IP', 'status.hostIP')] : []),
      heapVariable,
      ...(part.args[0] === 'dns' || part.args[0] === 'authority' ? resolverVariables : []),
      ...itemsOf(extraEnv),
    ],
    ports: part.isWithoutAdmin ? ports : [admin, ...ports],
    ...probesOf(part),
    resources: resourcesOf(values[part.name]),
    securityContext: containerSecurity(mayAdministerNetwork(part) ? ['NET_ADMIN'] : []),
    volumeMounts: [
      { name: 'state', mountPath: '/var/lib/portolan' },
      { name: 'tmp', mountPath: '/tmp' },
      ...(part.secret === undefined ? [] : [{ name: 'secret', mountPath: '/etc/portolan', readOnly: true }]),
    ],
  };
}

function adminFlags({ isWithoutAdmin, isOnHostNetwork }: Part, { listenAddress }: Values): string[] {
  // In brackets: the address of a node may be IPv6.
  return isWithoutAdmin ? [] : ['--admin-listen', `${isOnHostNetwork ? '[$(HOST_IP)]' : listenAddress}:${adminPort}`];
}

function probesOf({ isWithoutAdmin, ports }: Part): object {
  const connection = { tcpSocket: { port: ports[0]?.name } };
  const at = (path: string) => (isWithoutAdmin ? connection : { httpGet: { path, port: 'admin' } });
  return {
    startupProbe: { ...at('/livez'), ...startupTimes },
    livenessProbe: { ...at('/livez'), periodSeconds: 10, timeoutSeconds: 3, failureThreshold: 6 },
    readinessProbe: { ...at('/readyz'), ...readinessTimes },
  };
}

function serviceOf(part: Part, { clusterIP = '', type }: NonNullable<Part['service']>): Manifest {
  // By number: not every Kubernetes finds a named port of a sidecar.
  const ports = part.ports.map(({ name, port, protocol }) => {
    return { name, port, targetPort: part.envoyRole === 'gateway' ? port : name, protocol };
  });
  return manifest(
    serviceType,
    { ...nameOf(part), labels: labelsOf(part) },
    {
      // A key that is undefined would differ from what an API server holds, each time anew.
      spec: {
        ...(type === undefined ? {} : { type }),
        selector: labelsOf(part),
        ports,
        ...(clusterIP === '' ? {} : { clusterIP }),
      },
    },
  );
}

function outsideObjects(part: Part, { name, port, type, rules }: OutsidePort): Manifest[] {
  const { name: own, namespace } = nameOf(part);
  const place = { name: `${own}-${name}`, namespace };
  const self: Subject = { kind: 'ServiceAccount', namespace, name: accountOf(part) };
  const ports = [{ name, port, targetPort: port, protocol: 'TCP' }];
  return [
    manifest(roleType, place, { rules }),
    manifest(roleBindingType, place, { subjects: [self], roleRef: roleRefOf('Role', place.name) }),
    manifest(serviceType, { ...place, labels: labelsOf(part) }, { spec: { type, selector: labelsOf(part), ports } }),
  ];
}

function budgetOf(part: Part): Manifest {
  return manifest(budgetType, nameOf(part), { spec: { maxUnavailable: 1, selector: { matchLabels: labelsOf(part) } } });
}

/** Only the ports that it serves can be reached, and by choice only from where the values say. */
function networkPolicyOf(part: Part, values: Values): Manifest {
  const { from, egress } = values[part.name];
  const rule = (ports: readonly object[], peers: readonly object[]) =>
    ports.length === 0 ? [] : [{ ports, ...given('from', peers) }];
  const admin = hasAdmin(part) ? [{ port: adminPort, protocol: 'TCP' }] : [];
  const outside = part.outside === undefined ? [] : [{ port: part.outside.port, protocol: 'TCP' }];
  const own = part.ports.map(({ port, protocol }) => ({ port, protocol }));
  return manifest(networkPolicyType, nameOf(part), {
    spec: {
      podSelector: { matchLabels: labelsOf(part) },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [...rule(admin, values.adminFrom), ...rule(own, from), ...rule(outside, [])],
      egress,
    },
  });
}
