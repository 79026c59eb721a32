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

/** Virtual hosts are asked for by the name of their route configuration, and named `<route configuration>/<name>`. */
function isForAll(type: XdsType, name: string): boolean {
  return name === wildcard || (type === 'virtual-host' && !name.includes('/'));
}

export function wishesOf(subscription: Subscription, { names }: ClientRequest, isFirst: boolean): Wishes {
  // A first request without names asks for everything, as it did before `*` was introduced.
  const isLegacy = wholeTypes.has(subscription.type) && subscription.names.size === 0;
  if (names.kind === 'changes') {
    const { subscribe, unsubscribe } = names;
    const isAll = (name: string) => isForAll(subscription.type, name);
    const isAsked = (isFirst && isLegacy && subscribe.length === 0) || subscribe.some(isAll);
    return {
      subscribe: subscribe.filter((name) => !isAll(name)),
      unsubscribe: unsubscribe.filter((name) => !isAll(name)),
      isWildcard: isAsked ? true : unsubscribe.some(isAll) ? false : undefined,
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
