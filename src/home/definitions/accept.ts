// Decides which names a definition gets and whether its kind is served. Pure; the caller passes in the time and the
// other kinds.

import { type WantedCondition, withConditions } from '../../kube/objects/conditions.ts';
import type { Kind } from '../model/kind.ts';
import {
  type CustomResourceDefinition,
  type DefinitionNames,
  type DefinitionStatus,
  storageVersionOf,
} from './definition.ts';

interface Refusal {
  readonly reason: string;
  readonly message: string;
}

/** `otherKinds` are all others: built-in ones and those of other definitions. */
export function acceptDefinition(
  definition: CustomResourceDefinition,
  otherKinds: readonly Kind[],
  nowIso: string,
): DefinitionStatus {
  const { status } = definition;
  const decision = decideNames(definition, otherKinds);
  const observedGeneration = definition.metadata.generation;
  const stamp = { now: nowIso, observedGeneration };
  return {
    ...status,
    conditions: [...withConditions(status?.conditions, conditionsOf(decision, status), stamp)],
    acceptedNames: decision.names,
    storedVersions: [...new Set([...(status?.storedVersions ?? []), storageVersionOf(definition.spec)])],
  };
}

export function isEstablished(definition: CustomResourceDefinition): boolean {
  const conditions = definition.status?.conditions ?? [];
  return conditions.some(({ type, status }) => type === 'Established' && status === 'True');
}

/** Whether objects of this kind would lie where those of another one lie. */
export function isPlaceTaken(
  { group, plural }: Pick<Kind, 'group' | 'plural'>,
  otherKinds: readonly Pick<Kind, 'group' | 'plural'>[],
): boolean {
  return otherKinds.some((other) => other.group === group && other.plural === plural);
}

// Once its names were good, a kind stays served: objects of it may exist. A built-in kind in its place is never hidden.
function conditionsOf(
  { refusal, isPlaceTaken }: NameDecision,
  status: DefinitionStatus | undefined,
): WantedCondition[] {
  const wasEstablished = status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True');
  const namesAccepted: WantedCondition =
    refusal === undefined
      ? { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
      : { type: 'NamesAccepted', status: 'False', ...refusal };
  if (wasEstablished && !isPlaceTaken) return [namesAccepted];
  const established: WantedCondition =
    refusal === undefined
      ? {
          type: 'Established',
          status: 'True',
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        }
      : { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' };
  return [namesAccepted, established];
}

interface NameDecision {
  readonly names: DefinitionNames;
  readonly refusal: Refusal | undefined;
  readonly isPlaceTaken: boolean;
}

/** A name in use stays as it was before; the first conflict found is reported. */
function decideNames({ spec, status }: CustomResourceDefinition, otherKinds: readonly Kind[]): NameDecision {
  const sameGroup = otherKinds.filter(({ group }) => group === spec.group);
  const resources = new Set(sameGroup.flatMap(({ plural, singular, shortNames }) => [plural, singular, ...shortNames]));
  const kinds = new Set(sameGroup.flatMap(({ kind, listKind }) => [kind, listKind]));
  const before: DefinitionNames = status?.acceptedNames ?? { plural: '', kind: '' };
  const names: DefinitionNames = { ...spec.names };
  const refusals: Refusal[] = [];
  const refuse = (reason: string, name: string) =>
    refusals.push({ reason, message: `${JSON.stringify(name)} is already in use` });

  for (const field of ['plural', 'singular', 'kind', 'listKind'] as const) {
    const name = spec.names[field];
    const isTaken = (field === 'kind' || field === 'listKind' ? kinds : resources).has(name ?? '');
    if (!isTaken) continue;
    refuse(`${field[0]!.toUpperCase()}${field.slice(1)}Conflict`, name!);
    restore(names, before, field);
  }
  const taken = spec.names.shortNames?.find((name) => resources.has(name));
  if (taken !== undefined) {
    refuse('ShortNamesConflict', taken);
    if (before.shortNames === undefined) delete names.shortNames;
    else names.shortNames = before.shortNames;
  }
  const place = { group: spec.group, plural: spec.names.plural };
  return { names, refusal: refusals[0], isPlaceTaken: isPlaceTaken(place, otherKinds) };
}

function restore(
  names: DefinitionNames,
  before: DefinitionNames,
  field: 'plural' | 'singular' | 'kind' | 'listKind',
): void {
  const previous = before[field];
  if (previous !== undefined) names[field] = previous;
  else if (field === 'singular' || field === 'listKind') delete names[field];
}
