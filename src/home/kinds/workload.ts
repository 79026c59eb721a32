// The Deployment and StatefulSet kinds: stored, not run.

import type { PodTemplate } from '../../kube/objects/pod.ts';
import { builtinKind } from './builtin.ts';
import { column, formatSelector, nameColumn, wideColumn } from './columns.ts';
import type { Kind } from './kind.ts';
import {
  applyDeploymentDefaults,
  applyStatefulSetDefaults,
  type Deployment,
  deploymentType,
  type StatefulSet,
  statefulSetType,
  validateDeployment,
  validateStatefulSet,
} from './rules/workload.ts';

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
  applyDefaults: applyStatefulSetDefaults,
  validate: validateStatefulSet,
});

function formatReady({ spec, status }: Deployment | StatefulSet): string {
  return `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`;
}

function containersOf(template: PodTemplate | undefined, field: 'name' | 'image'): string {
  return (template?.spec?.containers ?? []).map((container) => container[field] ?? '').join(',');
}
