// From a request to what it changes in a subscription, in both variants. Pure.

import type { XdsType } from '../resource.ts';
import type { ClientRequest } from './messages.ts';

export interface Wishes {
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  /** Undefined leaves it as it is. */
  readonly isWildcard: boolean | undefined;
}

export interface Subscription {
  readonly type: XdsType;
  readonly names: ReadonlySet<string>;
  readonly isWildcard: boolean;
}

/** A state-of-the-world response holds all resources of these types, and missing ones are gone. */
export const wholeTypes: ReadonlySet<XdsType> = new Set(['cluster', 'listener']);

const wildcard = '*';

/** An Envoy asks for the virtual hosts of a route configuration without a name. */
function startsWhole(type: XdsType): boolean {
  return wholeTypes.has(type) || type === 'virtual-host';
}

export function wishesOf(subscription: Subscription, { names }: ClientRequest, isFirst: boolean): Wishes {
  // A first request without names asks for everything, as it did before `*` was introduced.
  const isLegacy = startsWhole(subscription.type) && subscription.names.size === 0;
  if (names.kind === 'changes') {
    const { subscribe, unsubscribe } = names;
    const isAsked = (isFirst && isLegacy && subscribe.length === 0) || subscribe.includes(wildcard);
    return {
      subscribe: subscribe.filter((name) => name !== wildcard),
      unsubscribe: unsubscribe.filter((name) => name !== wildcard),
      isWildcard: isAsked ? true : unsubscribe.includes(wildcard) ? false : undefined,
    };
  }
  const all = new Set(names.names);
  const isAsked = all.delete(wildcard);
  const isEmpty = all.size === 0 && isLegacy && (isFirst || subscription.isWildcard);
  return {
    subscribe: [...all].filter((name) => !subscription.names.has(name)),
    unsubscribe: [...subscription.names].filter((name) => !all.has(name)),
    isWildcard: isAsked || isEmpty,
  };
}
