// The condition of each object that causes resources: rejected by proxies, withheld, or accepted again. Pure.

import type { WantedCondition } from '../../kube/objects/conditions.ts';
import type { Cause } from '../resource.ts';

/** One refusal or one withheld object, as a process reports it. */
export interface Complaint {
  readonly cause: Cause;
  readonly reason: 'RefusedByProxy' | 'Withheld';
  readonly message: string;
}

export const conditionType = 'Programmed';
const shownMax = 5;

export function causeKey({ at, kind, namespace, name }: Cause): string {
  return `${at}/${kind}/${namespace}/${name}`;
}

/** One condition for each object with complaints. */
export function conditionsOf(
  complaints: Iterable<Complaint>,
): Map<string, { readonly cause: Cause; readonly condition: WantedCondition }> {
  const byCause = new Map<string, Complaint[]>();
  for (const complaint of complaints) {
    const key = causeKey(complaint.cause);
    byCause.set(key, [...(byCause.get(key) ?? []), complaint]);
  }
  return new Map(
    [...byCause].map(([key, list]) => {
      const messages = [...new Set(list.map(({ message }) => message))].sort();
      const more = messages.length > shownMax ? `; and ${messages.length - shownMax} more` : '';
      const message = `${messages.slice(0, shownMax).join('; ')}${more}`;
      const reason = list.some((each) => each.reason === 'RefusedByProxy') ? 'RefusedByProxy' : 'Withheld';
      return [key, { cause: list[0]!.cause, condition: { type: conditionType, status: 'False', reason, message } }];
    }),
  );
}

export const inOrder: WantedCondition = {
  type: conditionType,
  status: 'True',
  reason: 'Accepted',
  message: 'no proxy refuses it',
};
