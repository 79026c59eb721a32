// Placements that failed in this cluster, and why: written to its lease at the broker, and as an Event on the object
// in the way. Problems that an earlier run reported are not reported again.

import type { Log } from '../../base/log.ts';
import type { EventRecorder } from '../../kube/controller/events.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { formatProblems, type PlacementProblem, parseProblems, placementsAnnotation } from '../rules/placement.ts';

export interface PlacementProblems {
  /** By the name of the FederatedService. `about` is the object in the way, if there is one. */
  set(name: string, problem: PlacementProblem, about?: KubernetesObject): Promise<void>;
  clear(name: string): void;
  /** The wanted annotations of our lease, given its present state. */
  annotations(present: Lease | undefined): Record<string, string>;
}

export interface PlacementProblemsOptions {
  readonly events: EventRecorder;
  readonly log: Log;
  /** Whether there is a FederatedService of that name; undefined while that is not known. */
  readonly exists: (name: string) => boolean | undefined;
}

export function createPlacementProblems({ events, log, exists }: PlacementProblemsOptions): PlacementProblems {
  /** Looked at since we started; undefined is no problem. */
  const decided = new Map<string, PlacementProblem | undefined>();
  let saidBefore: ReadonlyMap<string, PlacementProblem> | undefined;

  return {
    set: async (name, problem, about) => {
      const before = decided.has(name) ? decided.get(name) : saidBefore?.get(name);
      decided.set(name, problem);
      if (before?.state === problem.state && before.message === problem.message) return;
      log.info('federated service not placed', { service: name, ...problem });
      if (about === undefined || problem.state !== 'Refused') return;
      const message = `FederatedService ${name} is not placed in this cluster: ${problem.message}`;
      await events.record({ about, type: 'Warning', reason: 'PlacementRefused', message });
    },
    clear: (name) => {
      // Every service of the cluster passes here; only those wanted for placement are remembered.
      if (exists(name) === false) decided.delete(name);
      else decided.set(name, undefined);
    },
    annotations: (present) => {
      if (present !== undefined) saidBefore ??= parseProblems(present.metadata.annotations?.[placementsAnnotation]);
      const problems = new Map<string, PlacementProblem>();
      for (const [name, problem] of [...(saidBefore ?? []), ...decided]) {
        if (problem === undefined || exists(name) === false) problems.delete(name);
        else problems.set(name, problem);
      }
      const text = formatProblems(problems);
      const annotations: Record<string, string> = {};
      if (text !== undefined) annotations[placementsAnnotation] = text;
      return annotations;
    },
  };
}
