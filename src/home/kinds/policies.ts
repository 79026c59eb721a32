// The NetworkPolicy and PodDisruptionBudget kinds: stored, and enforced by nothing here. Charts bring them.

import { checkOneOf } from '../../kube/objects/checks.ts';
import { type FieldError, invalid } from '../../kube/objects/field-error.ts';
import { checkLabelSelector, type LabelSelector } from '../../kube/objects/label-selector.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { column, formatSelector, nameColumn } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { builtinKind, storedOnly } from './builtin.ts';

interface NetworkPolicy extends KubernetesObject {
  spec?: { podSelector?: LabelSelector; policyTypes?: string[]; ingress?: PolicyRule[]; egress?: PolicyRule[] };
}

interface PolicyRule {
  ports?: { port?: number | string; endPort?: number }[];
}

export const networkPolicyKind: Kind = builtinKind<NetworkPolicy>({
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'networkpolicies',
  kind: 'NetworkPolicy',
  isNamespaced: true,
  hasGeneration: true,
  shortNames: ['netpol'],
  columns: [nameColumn, column<NetworkPolicy>('Pod-Selector', ({ spec }) => formatSelector(spec?.podSelector))],
  applyDefaults: ({ spec }) => {
    if (spec === undefined) return;
    spec.policyTypes ??= spec.egress === undefined ? ['Ingress'] : ['Ingress', 'Egress'];
  },
  validate: validateNetworkPolicy,
  behaviour: { warnings: () => [storedOnly('NetworkPolicy', 'enforces')] },
});

function validateNetworkPolicy({ spec }: NetworkPolicy): FieldError[] {
  const errors: FieldError[] = [];
  if (spec?.podSelector !== undefined) checkLabelSelector(errors, 'spec.podSelector', spec.podSelector);
  for (const [index, type] of (spec?.policyTypes ?? []).entries())
    checkOneOf(errors, `spec.policyTypes[${index}]`, type, ['Ingress', 'Egress']);
  for (const direction of ['ingress', 'egress'] as const) {
    for (const [index, rule] of (spec?.[direction] ?? []).entries())
      checkEndPorts(errors, `spec.${direction}[${index}].ports`, rule);
  }
  return errors;
}

function checkEndPorts(errors: FieldError[], field: string, { ports = [] }: PolicyRule): void {
  for (const [index, { port, endPort }] of ports.entries()) {
    if (endPort === undefined) continue;
    const why =
      typeof port !== 'number'
        ? 'may not be specified when `port` is not a number'
        : endPort < port
          ? 'must be greater than or equal to `port`'
          : undefined;
    if (why !== undefined) errors.push(invalid(`${field}[${index}].endPort`, endPort, why));
  }
}

interface PodDisruptionBudget extends KubernetesObject {
  spec?: { minAvailable?: number | string; maxUnavailable?: number | string; selector?: LabelSelector };
  status?: { disruptionsAllowed?: number };
}

export const podDisruptionBudgetKind: Kind = builtinKind<PodDisruptionBudget>({
  group: 'policy',
  version: 'v1',
  plural: 'poddisruptionbudgets',
  kind: 'PodDisruptionBudget',
  isNamespaced: true,
  hasGeneration: true,
  shortNames: ['pdb'],
  columns: [
    nameColumn,
    column<PodDisruptionBudget>('Min Available', ({ spec }) => String(spec?.minAvailable ?? 'N/A')),
    column<PodDisruptionBudget>('Max Unavailable', ({ spec }) => String(spec?.maxUnavailable ?? 'N/A')),
    column<PodDisruptionBudget>('Allowed Disruptions', ({ status }) => status?.disruptionsAllowed ?? 0, 'integer'),
  ],
  validate: validateBudget,
  behaviour: { warnings: () => [storedOnly('PodDisruptionBudget', 'enforces')] },
});

function validateBudget({ spec }: PodDisruptionBudget): FieldError[] {
  const errors: FieldError[] = [];
  if (spec?.minAvailable !== undefined && spec.maxUnavailable !== undefined)
    errors.push(invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set'));
  if (spec?.selector !== undefined) checkLabelSelector(errors, 'spec.selector', spec.selector);
  return errors;
}
