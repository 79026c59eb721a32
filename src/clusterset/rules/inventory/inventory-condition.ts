// The condition Inventory of a ClusterSet: whether each member has its ClusterProfile, and why not. Pure.

import { compareText } from '../../../base/compare-text.ts';
import type { WantedCondition } from '../../../kube/objects/conditions.ts';

export const inventoryCondition = 'Inventory';

/** So many clusters are named in the message. */
const namedMax = 5;

export interface InventoryProblem {
  readonly reason: 'NameTaken' | 'Refused';
  readonly message: string;
}

/** By member, undefined for each that has its profile; `unread` is why profiles cannot be read at all. */
export function inventoryWanted(request: {
  readonly outcomes: ReadonlyMap<string, InventoryProblem | undefined>;
  readonly unread: string | undefined;
}): WantedCondition {
  const { outcomes, unread } = request;
  const failed = (reason: string, message: string) =>
    ({ type: inventoryCondition, status: 'False', reason, message }) as const;
  if (unread !== undefined) return failed('Unreadable', `ClusterProfiles cannot be read at the broker: ${unread}`);
  const problems = [...outcomes].flatMap(([cluster, problem]) =>
    problem === undefined ? [] : [{ cluster, ...problem }],
  );
  const [first] = problems.sort((one, other) => compareText(one.cluster, other.cluster));
  if (first === undefined) {
    const message = `each of the ${outcomes.size} members has its ClusterProfile`;
    return { type: inventoryCondition, status: 'True', reason: 'Written', message };
  }
  const texts = problems.slice(0, namedMax).map(({ cluster, message }) => `cluster ${cluster}: ${message}`);
  const more = problems.length > namedMax ? `; and ${problems.length - namedMax} more` : '';
  return failed(first.reason, `${texts.join('; ')}${more}`);
}
