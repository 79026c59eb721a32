// The condition SealedExports of a member's Cluster: whether exports can be sealed for it and by it, and what it refused.
// Everybody in the set reads it, so it names clusters and no services. Pure.

import { clipText } from '../../../base/text/clip-text.ts';
import type { WantedCondition } from '../../../kube/objects/conditions.ts';

export const sealingCondition = 'SealedExports';

export interface SealingFacts {
  readonly cluster: string;
  /** Why there are no keys. */
  readonly problem: string | undefined;
  /** Fingerprint of the own key; undefined while there is none. */
  readonly fingerprint: string | undefined;
  /** The one that the admin confirmed. */
  readonly confirmed: string | undefined;
  /** Other members whose key cannot be used, and why. */
  readonly untrusted: readonly { readonly cluster: string; readonly isChanged: boolean; readonly why: string }[];
  /** Records of other members that were refused, and why the first one was. */
  readonly refused: readonly { readonly cluster: string; readonly count: number; readonly why: string }[];
}

const namedMax = 10;
const messageLengthMax = 4_096;

export function sealingWanted(facts: SealingFacts): WantedCondition {
  const { cluster, problem, fingerprint, confirmed, untrusted, refused } = facts;
  if (fingerprint === undefined) return no('NoKey', problem ?? 'the keys of this cluster are not there yet');
  if (confirmed !== fingerprint)
    return no('KeyNotConfirmed', `its key is ${fingerprint}: compare it there, then portolan broker accept ${cluster}`);
  const changed = untrusted.filter(({ isChanged }) => isChanged);
  if (changed.length > 0) return no('KeyChanged', listed(changed.map((one) => `${one.cluster}: ${one.why}`)));
  if (refused.length > 0)
    return no('RecordsRefused', listed(refused.map((one) => `${one.count} of ${one.cluster}: ${one.why}`)));
  const without = untrusted.map((one) => one.cluster);
  const message =
    without.length === 0 ? 'all members have a confirmed key' : `without a confirmed key: ${listed(without)}`;
  return { type: sealingCondition, status: 'True', reason: 'Ready', message: clipText(message, messageLengthMax) };
}

function no(reason: string, message: string): WantedCondition {
  return { type: sealingCondition, status: 'False', reason, message: clipText(message, messageLengthMax) };
}

function listed(parts: readonly string[]): string {
  const more = parts.length - namedMax;
  return `${parts.slice(0, namedMax).join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}
