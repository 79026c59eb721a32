// Who may call into this cluster, as its home has it: the mode, the source ranges of other members, and the ranges of its own
// Pods. Part of the ConfigMap that the agent keeps for data planes, which see no broker. Pure.

import { compareText } from '../../../base/compare-text.ts';
import { isObject } from '../../../base/json.ts';
import type { ConfigMap } from '../../../kube/objects/config-map.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import type { AccessMode } from '../../kinds/cluster-set.ts';
import { networkOf } from '../networks/reach.ts';
import type { HomeAccess } from './home-access.ts';
import { parseAccessMode, stricterMode } from './mode.ts';

export interface SetAccess {
  readonly mode: AccessMode;
  /** Source ranges of other clusters of this network, by id; an empty list for one without ranges. */
  readonly sources: ReadonlyMap<string, readonly string[]>;
  /** Ranges of this cluster's own Pods. */
  readonly podRanges: readonly string[];
  /** Packets from here that belong to no member are refused too. */
  readonly closedRanges: readonly string[];
}

export const openAccess: SetAccess = { mode: 'Open', sources: new Map(), podRanges: [], closedRanges: [] };

export interface SetAccessInput {
  /** As the ClusterSet has it. */
  readonly mode: AccessMode;
  readonly home: HomeAccess;
  readonly members: readonly Cluster[];
  /** This cluster. */
  readonly self: string;
  /** The ranges it joined with, if its home has none. */
  readonly joinedPodRanges: readonly string[];
}

/** The stricter of both modes holds. Clusters of other networks come through gateways, and their addresses mean nothing here. */
export function setAccessOf({ mode, home, members, self, joinedPodRanges }: SetAccessInput): SetAccess {
  const strictest = stricterMode(mode, home.mode);
  if (strictest === 'Open') return openAccess;
  const own = members.find(({ metadata }) => metadata.name === self);
  const network = own && networkOf(own);
  const neighbours = members.filter((one) => one !== own && (network === undefined || networkOf(one) === network));
  neighbours.sort((a, b) => compareText(a.metadata.name, b.metadata.name));
  return {
    mode: strictest,
    sources: new Map(neighbours.map(({ metadata, spec }) => [metadata.name, textsIn(spec.sourceRanges)])),
    podRanges: home.podRanges.length > 0 ? home.podRanges : joinedPodRanges,
    closedRanges: home.closedRanges,
  };
}

/** Nothing where access is open. */
export function accessData({ mode, sources, podRanges, closedRanges }: SetAccess): Record<string, string> {
  if (mode === 'Open') return {};
  return { access: JSON.stringify({ mode, sources: Object.fromEntries(sources), podRanges, closedRanges }) };
}

/** Undefined if it cannot be read: then whatever was read before holds. */
export function readAccess(written: Pick<ConfigMap, 'data'> | undefined): SetAccess | undefined {
  const text = written?.data?.['access'];
  if (text === undefined) return written?.data === undefined ? undefined : openAccess;
  try {
    const value: unknown = JSON.parse(text);
    const { mode, sources, podRanges, closedRanges } = isObject(value) ? value : {};
    const known = parseAccessMode(mode);
    if (known === undefined || !isObject(sources)) return undefined;
    return {
      mode: known,
      sources: new Map(Object.entries(sources).map(([id, ranges]) => [id, textsIn(ranges)])),
      podRanges: textsIn(podRanges),
      closedRanges: textsIn(closedRanges),
    };
  } catch {
    return undefined;
  }
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
