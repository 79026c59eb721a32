// Who has a say over the choice for one import, in the order of precedence, in words. Pure.

import { compareText } from '../../../base/compare-text.ts';
import type { ServiceImportPolicy } from '../../kinds/service-import-policy.ts';
import { type ImportSubject, policyProblem, selectsImport } from './import-policies.ts';
import { isNoRouting, type Routing } from './routing.ts';

interface PrecedenceFacts {
  /** All of this cluster. */
  readonly policies: readonly ServiceImportPolicy[];
  readonly subject: ImportSubject;
  /** Whether the ClusterSet has wishes of its own. */
  readonly hasSetChoice: boolean;
  /** As it lies on the import. */
  readonly routing: Routing;
}

/** The first line decides; what lies over it comes after it. Empty if nobody has a wish. */
export function precedenceOf({ policies, subject, hasSetChoice, routing }: PrecedenceFacts): string[] {
  const [first, ...others] = policies
    .filter((policy) => policy.metadata.deletionTimestamp === undefined && selectsImport(policy, subject))
    .sort((one, other) => compareText(one.metadata.name, other.metadata.name));
  if (first === undefined && !hasSetChoice && isNoRouting(routing)) return [];
  const names = others.map(({ metadata }) => metadata.name);
  const lowered = Object.entries(routing.lowered).map(([cluster, percent]) => `${cluster} to ${percent} %`);
  return [
    ...(first === undefined ? [] : [decision(first)]),
    ...(names.length === 0 ? [] : [`no say, because others are first by name: ${shown(names)}`]),
    ...(hasSetChoice
      ? [
          first === undefined
            ? 'ClusterSet.spec.choice decides: no ServiceImportPolicy selects it'
            : 'ClusterSet.spec.choice: not used, a policy selects it',
        ]
      : []),
    ...(lowered.length === 0 ? [] : [`exporters lower their own share: ${lowered.join(', ')}`]),
    ...(routing.shift === undefined ? [] : ['a TrafficShift lies over all of it']),
  ];
}

function decision({ metadata: { name }, spec }: ServiceImportPolicy): string {
  const problem = policyProblem(spec ?? {});
  return problem === undefined
    ? `ServiceImportPolicy ${name} decides: the first by name that selects it`
    : `ServiceImportPolicy ${name} would decide, and makes no sense (${problem}): what held before goes on`;
}

const namesMax = 5;

function shown(names: readonly string[]): string {
  const more = names.length - namesMax;
  return names.slice(0, namesMax).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
