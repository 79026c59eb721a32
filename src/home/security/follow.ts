// Keeps an index informed of every object of a kind, straight from the store: all of them first, then each change.

import type { AnyObject } from '../../kube/objects/object.ts';
import { keyPrefixOf } from '../model/kind.ts';
import { parsePlace, textOf } from '../model/stored.ts';
import { type Following, type FollowRequest, followPrefix } from '../store/follow.ts';

export interface Follower {
  readonly type: { readonly group: string; readonly plural: string };
  /** The object as it lies in the store: without apiVersion, kind and resourceVersion. */
  onSet(object: AnyObject): void;
  onRemove(namespace: string, name: string): void;
}

/** Resolves when the follower knows everything that was there. */
export function follow(
  source: Pick<FollowRequest, 'store' | 'world' | 'log'>,
  { type, onSet, onRemove }: Follower,
): Promise<Following> {
  const prefix = keyPrefixOf(type);
  return followPrefix({
    ...source,
    prefix,
    onEvent: ({ key, entry }) => {
      if (entry !== undefined) return onSet(JSON.parse(textOf(entry.value)) as AnyObject);
      const { namespace, name } = parsePlace(prefix, key);
      onRemove(namespace, name);
    },
  });
}
