// The Deployment, StatefulSet and DaemonSet kinds: stored, not run.

import { isSameJson } from '../../base/json.ts';
import { checkLabels, checkNotNegative, checkOneOf, checkUnchanged } from '../../kube/objects/checks.ts';
import { type FieldError, forbidden, invalid, notSupported } from '../../kube/objects/field-error.ts';
import {
  checkLabelSelector,
  isEmptySelector,
  type LabelSelector,
  selectsLabels,
} from '../../kube/objects/label-selector.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { PodTemplate } from '../../kube/objects/pod.ts';
import { column, formatSelector, nameColumn, wideColumn } from '../model/columns.ts';
import type { Kind, ScaleFields } from '../model/kind.ts';
import { builtinKind, storedOnly } from './builtin.ts';
import { applyPodSpecDefaults, checkPodSpec } from './rules/pod-rules.ts';

const deploymentType: ResourceType = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  isNamespaced: true,
};

const daemonSetType: ResourceType = { ...deploymentType, plural: 'daemonsets', kind: 'DaemonSet' };
const statefulSetType: ResourceType = { ...deploymentType, plural: 'statefulsets', kind: 'StatefulSet' };

export const scaleFields: ScaleFields = {
  replicas: ['spec', 'replicas'],
  statusReplicas: ['status', 'replicas'],
  selectorOf: (object) => {
    const { selector } = (object as Deployment).spec ?? {};
    return selector === undefined || isEmptySelector(selector) ? '' : formatSelector(selector);
  },
};

export const deploymentKind: Kind = builtinKind<Deployment>({
  ...deploymentType,
  hasGeneration: true,
  shortNames: ['deploy'],
  categories: ['all'],
  columns: [
    nameColumn,
    column<Deployment>('Ready', formatReady),
    column<Deployment>('Up-to-date', ({ status }) => status?.updatedReplicas ?? 0, 'integer'),
    column<Deployment>('Available', ({ status }) => status?.availableReplicas ?? 0, 'integer'),
    wideColumn<Deployment>('Containers', ({ spec }) => containersOf(spec?.template, 'name')),
    wideColumn<Deployment>('Images', ({ spec }) => containersOf(spec?.template, 'image')),
    wideColumn<Deployment>('Selector', ({ spec }) => formatSelector(spec?.selector)),
  ],
  scale: scaleFields,
  applyDefaults: applyDeploymentDefaults,
  validate: validateDeployment,
});

export const statefulSetKind: Kind = builtinKind<StatefulSet>({
  ...statefulSetType,
  hasGeneration: true,
  shortNames: ['sts'],
  categories: ['all'],
  columns: [
    nameColumn,
    column<StatefulSet>('Ready', formatReady),
    wideColumn<StatefulSet>('Containers', ({ spec }) => containersOf(spec?.template, 'name')),
    wideColumn<StatefulSet>('Images', ({ spec }) => containersOf(spec?.template, 'image')),
  ],
  scale: scaleFields,
  applyDefaults: applyStatefulSetDefaults,
  validate: validateStatefulSet,
});

export const daemonSetKind: Kind = builtinKind<DaemonSet>({
  ...daemonSetType,
  hasGeneration: true,
  shortNames: ['ds'],
  categories: ['all'],
  columns: [
    nameColumn,
    column<DaemonSet>('Desired', ({ status }) => status?.desiredNumberScheduled ?? 0, 'integer'),
    column<DaemonSet>('Current', ({ status }) => status?.currentNumberScheduled ?? 0, 'integer'),
    column<DaemonSet>('Ready', ({ status }) => status?.numberReady ?? 0, 'integer'),
    wideColumn<DaemonSet>('Containers', ({ spec }) => containersOf(spec?.template, 'name')),
    wideColumn<DaemonSet>('Images', ({ spec }) => containersOf(spec?.template, 'image')),
    wideColumn<DaemonSet>('Selector', ({ spec }) => formatSelector(spec?.selector)),
  ],
  applyDefaults: applyDaemonSetDefaults,
  validate: validateDaemonSet,
  behaviour: { warnings: () => [storedOnly('DaemonSet', 'runs')] },
});

function formatReady({ spec, status }: Deployment | StatefulSet): string {
  return `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`;
}

export function containersOf(template: PodTemplate | undefined, field: 'name' | 'image'): string {
  return (template?.spec?.containers ?? []).map((container) => container[field] ?? '').join(',');
}

export interface WorkloadSpec {
  replicas?: number;
  selector?: LabelSelector;
  template?: PodTemplate;
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
}

interface WorkloadStatus {
  replicas?: number;
  readyReplicas?: number;
  updatedReplicas?: number;
  availableReplicas?: number;
}

export interface Deployment extends KubernetesObject {
  spec?: WorkloadSpec & {
    strategy?: { type?: string; rollingUpdate?: { maxUnavailable?: number | string; maxSurge?: number | string } };
    progressDeadlineSeconds?: number;
  };
  status?: WorkloadStatus;
}

export interface StatefulSet extends KubernetesObject {
  spec?: WorkloadSpec & {
    serviceName?: string;
    podManagementPolicy?: string;
    volumeClaimTemplates?: object[];
    updateStrategy?: { type?: string; rollingUpdate?: { partition?: number } };
    persistentVolumeClaimRetentionPolicy?: { whenDeleted?: string; whenScaled?: string };
  };
  status?: WorkloadStatus;
}

interface DaemonSet extends KubernetesObject {
  spec?: Omit<WorkloadSpec, 'replicas'> & {
    updateStrategy?: {
      type?: string;
      rollingUpdate?: { maxUnavailable?: number | string; maxSurge?: number | string };
    };
  };
  status?: { desiredNumberScheduled?: number; currentNumberScheduled?: number; numberReady?: number };
}

function applyDaemonSetDefaults({ spec }: DaemonSet): void {
  if (spec === undefined) return;
  applyTemplateDefaults(spec);
  const strategy = (spec.updateStrategy ??= {});
  strategy.type ??= 'RollingUpdate';
  if (strategy.type !== 'RollingUpdate') return;
  strategy.rollingUpdate ??= {};
  strategy.rollingUpdate.maxUnavailable ??= 1;
  strategy.rollingUpdate.maxSurge ??= 0;
}

function validateDaemonSet(daemonSet: DaemonSet, previous: DaemonSet | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const spec = daemonSet.spec ?? {};
  checkWorkload(errors, spec, 'daemonset');
  checkOneOf(errors, 'spec.updateStrategy.type', spec.updateStrategy?.type, ['OnDelete', 'RollingUpdate']);
  if (previous !== undefined) checkUnchanged(errors, 'spec.selector', spec.selector, previous.spec?.selector);
  return errors;
}

export function applyDeploymentDefaults({ spec }: Deployment): void {
  if (spec === undefined) return;
  applyWorkloadDefaults(spec);
  spec.progressDeadlineSeconds ??= 600;
  const strategy = (spec.strategy ??= {});
  strategy.type ??= 'RollingUpdate';
  if (strategy.type !== 'RollingUpdate') return;
  strategy.rollingUpdate ??= {};
  strategy.rollingUpdate.maxUnavailable ??= '25%';
  strategy.rollingUpdate.maxSurge ??= '25%';
}

export function applyStatefulSetDefaults({ spec }: StatefulSet): void {
  if (spec === undefined) return;
  applyWorkloadDefaults(spec);
  spec.podManagementPolicy ??= 'OrderedReady';
  const retention = (spec.persistentVolumeClaimRetentionPolicy ??= {});
  retention.whenDeleted ??= 'Retain';
  retention.whenScaled ??= 'Retain';
  const strategy = (spec.updateStrategy ??= {});
  strategy.type ??= 'RollingUpdate';
  if (strategy.type !== 'RollingUpdate') return;
  strategy.rollingUpdate ??= {};
  strategy.rollingUpdate.partition ??= 0;
}

function applyWorkloadDefaults(spec: WorkloadSpec): void {
  spec.replicas ??= 1;
  applyTemplateDefaults(spec);
}

function applyTemplateDefaults(spec: WorkloadSpec): void {
  spec.revisionHistoryLimit ??= 10;
  if (spec.template?.spec !== undefined) applyPodSpecDefaults(spec.template.spec);
}

export function validateDeployment(deployment: Deployment, previous: Deployment | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const spec = deployment.spec ?? {};
  checkWorkload(errors, spec, 'deployment');
  checkOneOf(errors, 'spec.strategy.type', spec.strategy?.type, ['Recreate', 'RollingUpdate']);
  if (spec.strategy?.type === 'Recreate' && spec.strategy.rollingUpdate !== undefined) {
    const why = "may not be specified when strategy `type` is 'Recreate'";
    errors.push(forbidden('spec.strategy.rollingUpdate', why));
  }
  if (previous !== undefined) checkUnchanged(errors, 'spec.selector', spec.selector, previous.spec?.selector);
  return errors;
}

export function validateStatefulSet(statefulSet: StatefulSet, previous: StatefulSet | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const spec = statefulSet.spec ?? {};
  checkWorkload(errors, spec, 'statefulset');
  checkOneOf(errors, 'spec.podManagementPolicy', spec.podManagementPolicy, ['OrderedReady', 'Parallel']);
  checkOneOf(errors, 'spec.updateStrategy.type', spec.updateStrategy?.type, ['OnDelete', 'RollingUpdate']);
  if (previous !== undefined && !isSameJson(fixedPart(spec), fixedPart(previous.spec)))
    errors.push(forbidden('spec', fixedText));
  return errors;
}

const fixedText = 'selector, serviceName, podManagementPolicy and volumeClaimTemplates cannot be changed';

function fixedPart(spec: StatefulSet['spec']): unknown {
  return [spec?.selector, spec?.serviceName, spec?.podManagementPolicy, spec?.volumeClaimTemplates];
}

export function checkWorkload(errors: FieldError[], spec: WorkloadSpec, kind: string): void {
  checkNotNegative(errors, 'spec.replicas', spec.replicas);
  checkNotNegative(errors, 'spec.minReadySeconds', spec.minReadySeconds);
  checkNotNegative(errors, 'spec.revisionHistoryLimit', spec.revisionHistoryLimit);
  const labels = spec.template?.metadata?.labels ?? {};
  if (spec.selector !== undefined) checkSelector(errors, spec.selector, labels, kind);
  checkLabels(errors, 'spec.template.metadata.labels', labels);
  const template = spec.template?.spec ?? {};
  checkPodSpec(errors, 'spec.template.spec', template);
  if (template.restartPolicy !== undefined && template.restartPolicy !== 'Always') {
    errors.push(notSupported('spec.template.spec.restartPolicy', template.restartPolicy, ['Always']));
  }
}

function checkSelector(
  errors: FieldError[],
  selector: LabelSelector,
  labels: Record<string, string>,
  kind: string,
): void {
  checkLabelSelector(errors, 'spec.selector', selector);
  if (isEmptySelector(selector)) {
    errors.push(invalid('spec.selector', selector, `empty selector is invalid for ${kind}`));
  } else if (!selectsLabels(selector, labels)) {
    errors.push(invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  }
}
