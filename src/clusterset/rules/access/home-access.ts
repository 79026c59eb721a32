// What a cluster's own admin says about access, in a ConfigMap of its home that no broker reaches. Pure.

import { parseRange } from '../../../base/net/ip.ts';
import type { ConfigMap } from '../../../kube/objects/config-map.ts';
import type { AccessMode } from '../../kinds/cluster-set.ts';
import { parseAccessMode } from './mode.ts';

export const homeAccessName = 'portolan-access';

export const homeAccessKeys = {
  /** A mode; the stricter one of it and of the ClusterSet holds. */
  access: 'access',
  /** Ranges of this cluster's Pods, with commas between them; `join` writes them. */
  podRanges: 'podRanges',
  /** Ranges from which packets of no member are refused too. */
  closedRanges: 'closedRanges',
} as const;

export interface HomeAccess {
  readonly mode: AccessMode;
  readonly podRanges: readonly string[];
  readonly closedRanges: readonly string[];
  /** Values that make no sense. */
  readonly problems: readonly string[];
}

/** A mode that cannot be read is the strictest: a typing error must not open anything. */
export function readHomeAccess(written: Pick<ConfigMap, 'data'> | undefined): HomeAccess {
  const data = written?.data ?? {};
  const text = data[homeAccessKeys.access]?.trim() ?? '';
  const mode = text === '' ? 'Open' : parseAccessMode(text);
  const lists = [homeAccessKeys.podRanges, homeAccessKeys.closedRanges].map((key) => rangesIn(key, data[key]));
  return {
    mode: mode ?? 'Exported',
    podRanges: lists[0]!.ranges,
    closedRanges: lists[1]!.ranges,
    problems: [
      ...(mode === undefined
        ? [
            `ConfigMap ${homeAccessName}: access ${JSON.stringify(text.slice(0, 70))} is none of Open, Audit and Exported, Exported holds`,
          ]
        : []),
      ...lists.flatMap(({ problems }) => problems),
    ],
  };
}

function rangesIn(key: string, text: string | undefined): { ranges: string[]; problems: string[] } {
  const parts = (text ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const wrong = parts.filter((part) => parseRange(part) === undefined);
  return {
    ranges: parts.filter((part) => parseRange(part) !== undefined),
    problems: wrong
      .slice(0, 5)
      .map((part) => `ConfigMap ${homeAccessName}: ${key} ${JSON.stringify(part)} is no range`),
  };
}
