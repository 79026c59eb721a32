// The PodTemplate kind: a template kept for whoever makes Pods of it.

import { checkLabels } from '../../kube/objects/checks.ts';
import type { FieldError } from '../../kube/objects/field-error.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import type { PodTemplate as Template } from '../../kube/objects/pod.ts';
import { column, formatLabels, nameColumn } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { builtinKind } from './builtin.ts';
import { applyPodSpecDefaults, checkPodSpec } from './rules/pod-rules.ts';
import { containersOf } from './workload.ts';

interface PodTemplate extends KubernetesObject {
  template?: Template;
}

export const podTemplateKind: Kind = builtinKind<PodTemplate>({
  group: '',
  version: 'v1',
  plural: 'podtemplates',
  kind: 'PodTemplate',
  isNamespaced: true,
  columns: [
    nameColumn,
    column<PodTemplate>('Containers', ({ template }) => containersOf(template, 'name')),
    column<PodTemplate>('Images', ({ template }) => containersOf(template, 'image')),
    column<PodTemplate>('Pod Labels', ({ template }) => formatLabels(template?.metadata?.labels)),
  ],
  applyDefaults: ({ template }) => {
    if (template?.spec !== undefined) applyPodSpecDefaults(template.spec);
  },
  validate: ({ template }) => {
    const errors: FieldError[] = [];
    checkLabels(errors, 'template.metadata.labels', template?.metadata?.labels);
    checkPodSpec(errors, 'template.spec', template?.spec ?? {});
    return errors;
  },
});
