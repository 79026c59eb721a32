// The condition ClustersAnswer of an import: clusters whose endpoints are called ready at home and do not answer from here. False only if
// all nodes of this cluster that report agree: one node's view is its own. Pure.

import { formatTime, type WantedCondition } from '../../../kube/objects/conditions.ts';
import type { SilentFrom } from '../../../kube/objects/reports/silent-clusters.ts';

export const answerCondition = 'ClustersAnswer';

/** So many clusters and nodes are named. */
const clustersMax = 20;
const nodesMax = 5;

export function clustersAnswer(silent: ReadonlyMap<string, SilentFrom>, self: string): WantedCondition {
  const texts = [...silent].slice(0, clustersMax).map(([cluster, each]) => `${cluster}: ${textOf(each, self)}`);
  const more = silent.size > clustersMax ? [`and ${silent.size - clustersMax} more`] : [];
  const message = [...texts, ...more].join('; ');
  if ([...silent.values()].some(({ isAll }) => isAll))
    return { type: answerCondition, status: 'False', reason: 'NotAnswering', message };
  return silent.size === 0
    ? { type: answerCondition, status: 'True', reason: 'Answering', message: 'no node has left a cluster' }
    : { type: answerCondition, status: 'True', reason: 'NotFromSomeNodes', message };
}

function textOf({ nodes, isAll, sinceMs }: SilentFrom, self: string): string {
  const shown = nodes.slice(0, nodesMax).join(', ');
  const more = nodes.length > nodesMax ? ` and ${nodes.length - nodesMax} more` : '';
  const from = isAll ? self : `node${nodes.length === 1 ? '' : 's'} ${shown}${more} of ${self}`;
  return `ready at home, does not answer from ${from} since ${formatTime(sinceMs)}`;
}
