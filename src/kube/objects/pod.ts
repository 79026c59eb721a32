// The Kubernetes Pod, as far as we read it: nothing here runs one. Its rules are in rules/pod-rules.ts of home/kinds/, because
// templates of Deployments and StatefulSets follow them too.

import type { KubernetesObject, ObjectMeta, ResourceType } from './object.ts';

export const podType: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'pods',
  kind: 'Pod',
  isNamespaced: true,
};

export interface Pod extends KubernetesObject {
  spec?: PodSpec;
  status?: PodStatus;
}

export interface PodTemplate {
  metadata?: Partial<ObjectMeta>;
  spec?: PodSpec;
}

export interface PodSpec {
  containers?: Container[];
  initContainers?: Container[];
  volumes?: Volume[];
  nodeName?: string;
  hostname?: string;
  subdomain?: string;
  hostNetwork?: boolean;
  restartPolicy?: string;
  dnsPolicy?: string;
  schedulerName?: string;
  serviceAccountName?: string;
  serviceAccount?: string;
  terminationGracePeriodSeconds?: number;
  activeDeadlineSeconds?: number;
  enableServiceLinks?: boolean;
  securityContext?: object;
  readinessGates?: { conditionType: string }[];
  tolerations?: object[];
}

export interface Container {
  name: string;
  image?: string;
  imagePullPolicy?: string;
  terminationMessagePath?: string;
  terminationMessagePolicy?: string;
  restartPolicy?: string;
  ports?: ContainerPort[];
  env?: { name: string; value?: string; valueFrom?: { fieldRef?: { apiVersion?: string; fieldPath: string } } }[];
  resources?: { limits?: Record<string, string>; requests?: Record<string, string> };
  volumeMounts?: { name: string; mountPath: string }[];
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  startupProbe?: Probe;
}

export interface ContainerPort {
  name?: string;
  containerPort: number;
  hostPort?: number;
  protocol?: string;
}

export interface Probe {
  httpGet?: { path?: string; scheme?: string; port: number | string };
  timeoutSeconds?: number;
  periodSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
}

/** One source besides the name; which ones there are is the schema's business. */
export interface Volume {
  name: string;
  [source: string]: unknown;
}

interface PodStatus {
  phase?: string;
  reason?: string;
  podIP?: string;
  podIPs?: { ip: string }[];
  hostIP?: string;
  nominatedNodeName?: string;
  qosClass?: string;
  conditions?: { type: string; status: string }[];
  containerStatuses?: ContainerStatus[];
  initContainerStatuses?: ContainerStatus[];
}

export interface ContainerStatus {
  name: string;
  ready?: boolean;
  started?: boolean;
  restartCount?: number;
  lastState?: ContainerState;
  state?: ContainerState;
}

interface ContainerState {
  waiting?: { reason?: string };
  running?: object;
  terminated?: { reason?: string; exitCode?: number; signal?: number; finishedAt?: string };
}
