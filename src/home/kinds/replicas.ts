// The ReplicaSet and ReplicationController kinds: stored, not run. Tools list them beside Deployments.

import { checkLabels, checkNotNegative, checkUnchanged } from '../../kube/objects/checks.ts';
import { type FieldError, invalid, notSupported } from '../../kube/objects/field-error.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import type { PodTemplate } from '../../kube/objects/pod.ts';
import { column, formatLabels, formatSelector, nameColumn, wideColumn } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { builtinKind, storedOnly } from './builtin.ts';
import { applyPodSpecDefaults, checkPodSpec } from './rules/pod-rules.ts';
import { checkWorkload, containersOf, scaleFields, type WorkloadSpec } from './workload.ts';

interface Replicas<Spec> extends KubernetesObject {
  spec?: Spec;
  status?: { replicas?: number; readyReplicas?: number };
}

type ReplicaSet = Replicas<Omit<WorkloadSpec, 'revisionHistoryLimit'>>;

type ReplicationController = Replicas<{
  replicas?: number;
  minReadySeconds?: number;
  selector?: Record<string, string>;
  template?: PodTemplate;
}>;

const numbers = [
  nameColumn,
  column<Replicas<{ replicas?: number }>>('Desired', ({ spec }) => spec?.replicas ?? 0, 'integer'),
  column<Replicas<object>>('Current', ({ status }) => status?.replicas ?? 0, 'integer'),
  column<Replicas<object>>('Ready', ({ status }) => status?.readyReplicas ?? 0, 'integer'),
];

const templates = [
  wideColumn<Replicas<{ template?: PodTemplate }>>('Containers', ({ spec }) => containersOf(spec?.template, 'name')),
  wideColumn<Replicas<{ template?: PodTemplate }>>('Images', ({ spec }) => containersOf(spec?.template, 'image')),
];

export const replicaSetKind: Kind = builtinKind<ReplicaSet>({
  group: 'apps',
  version: 'v1',
  plural: 'replicasets',
  kind: 'ReplicaSet',
  isNamespaced: true,
  hasGeneration: true,
  shortNames: ['rs'],
  categories: ['all'],
  columns: [...numbers, ...templates, wideColumn<ReplicaSet>('Selector', ({ spec }) => formatSelector(spec?.selector))],
  scale: scaleFields,
  applyDefaults: ({ spec }) => {
    if (spec === undefined) return;
    spec.replicas ??= 1;
    if (spec.template?.spec !== undefined) applyPodSpecDefaults(spec.template.spec);
  },
  validate: (replicaSet, previous) => {
    const errors: FieldError[] = [];
    const spec = replicaSet.spec ?? {};
    checkWorkload(errors, spec, 'deployment');
    if (previous !== undefined) checkUnchanged(errors, 'spec.selector', spec.selector, previous.spec?.selector);
    return errors;
  },
  behaviour: { warnings: () => [storedOnly('ReplicaSet', 'runs')] },
});

export const replicationControllerKind: Kind = builtinKind<ReplicationController>({
  group: '',
  version: 'v1',
  plural: 'replicationcontrollers',
  kind: 'ReplicationController',
  isNamespaced: true,
  hasGeneration: true,
  shortNames: ['rc'],
  categories: ['all'],
  columns: [
    ...numbers,
    ...templates,
    wideColumn<ReplicationController>('Selector', ({ spec }) => formatLabels(spec?.selector)),
  ],
  scale: {
    ...scaleFields,
    selectorOf: (object) => {
      const { selector = {} } = (object as ReplicationController).spec ?? {};
      return Object.keys(selector).length === 0 ? '' : formatLabels(selector);
    },
  },
  applyDefaults: applyControllerDefaults,
  validate: validateController,
  behaviour: { warnings: () => [storedOnly('ReplicationController', 'runs')] },
});

/** As in Kubernetes, the labels of the template serve as selector and as labels where none are given. */
function applyControllerDefaults({ metadata, spec }: ReplicationController): void {
  if (spec === undefined) return;
  spec.replicas ??= 1;
  const labels = spec.template?.metadata?.labels ?? {};
  if (Object.keys(labels).length > 0) {
    if (Object.keys(spec.selector ?? {}).length === 0) spec.selector = { ...labels };
    if (Object.keys(metadata.labels ?? {}).length === 0) metadata.labels = { ...labels };
  }
  if (spec.template?.spec !== undefined) applyPodSpecDefaults(spec.template.spec);
}

function validateController({ spec = {} }: ReplicationController): FieldError[] {
  const errors: FieldError[] = [];
  checkNotNegative(errors, 'spec.replicas', spec.replicas);
  checkNotNegative(errors, 'spec.minReadySeconds', spec.minReadySeconds);
  checkLabels(errors, 'spec.selector', spec.selector);
  const labels = spec.template?.metadata?.labels ?? {};
  checkLabels(errors, 'spec.template.metadata.labels', labels);
  const selected = Object.entries(spec.selector ?? {});
  if (selected.length === 0) errors.push(invalid('spec.selector', spec.selector, 'empty selector is invalid'));
  else if (selected.some(([key, value]) => labels[key] !== value)) {
    errors.push(invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  }
  const template = spec.template?.spec ?? {};
  checkPodSpec(errors, 'spec.template.spec', template);
  if (template.restartPolicy !== undefined && template.restartPolicy !== 'Always') {
    errors.push(notSupported('spec.template.spec.restartPolicy', template.restartPolicy, ['Always']));
  }
  return errors;
}
