// Checks of peering: the process reports, peers are connected and not refused, exports share something. Pure.

import { formatElapsed } from '../../base/text/elapsed.ts';
import { keyOf } from '../../kube/objects/object.ts';
import { reachProblem, signOfLifeMsMax } from '../../peering/explain/explain.ts';
import { serviceOfImport } from '../../peering/kinds/imported-service.ts';
import { type Peer, type PeerSideStatus, peerDefaults } from '../../peering/kinds/peer.ts';
import { exportsService } from '../../peering/kinds/peer-export.ts';
import { reachableCondition, servedCondition } from '../../peering/rules/reach.ts';
import type { Checks, Found } from '../diagnosis.ts';
import { type ClusterFacts, hasHad, need } from '../facts.ts';
import { silentParts } from './clusterset.ts';

export const peeringChecks: Checks = {
  PTL0601: (facts) => {
    const silent = silentParts(facts, ['peering']);
    const isRunning = need(facts.parts).some(({ part, state }) => part === 'peering' && state === 'reporting');
    if (silent.length > 0 || isRunning) return isRunning ? [] : silent;
    const count = need(facts.peers).length;
    if (count === 0) return [];
    return [{ subject: 'peering', message: `there are ${count} Peers and no peering process reports` }];
  },
  PTL0602: ({ peers }) =>
    need(peers).flatMap((peer) =>
      sidesOf(peer).flatMap(([direction, side]) => {
        const subject = `Peer ${keyOf(peer)}`;
        if (side.state === 'Refused') return [{ subject, message: `${direction} refused: ${side.message ?? ''}` }];
        const refused = side.refused ?? 0;
        const first = side.refusals?.[0];
        const reason = first === undefined ? '' : `, such as ${first.id || '(no id)'}: ${first.reason}`;
        if (refused === 0) return [];
        return [
          { subject, message: `${direction}: ${refused} services refused${reason}`, severity: 'warning' as const },
        ];
      }),
    ),
  PTL0603: (facts) =>
    need(facts.peers).flatMap((peer): Found[] => {
      const { spec, status } = peer;
      const side = status?.consumer;
      if (spec.suspended || side?.state === undefined) return [];
      const contactMs = Date.parse(side.lastContact ?? '');
      const isOld = facts.nowMs - contactMs > signOfLifeMsMax;
      if (side.state !== 'Stale' && side.state !== 'Connecting' && !isOld) return [];
      const message = `it is away${side.message ? ` (${side.message})` : ''}; ${withdrawal(peer)}`;
      return [{ subject: `Peer ${keyOf(peer)}`, message, since: side.lastContact }];
    }),
  PTL0604: (facts) => [...nothingSelected(facts), ...unknownPeers(facts)],
  PTL0605: (facts) => notCarried(facts, reachableCondition),
  PTL0606: (facts) => notCarried(facts, servedCondition),
};

function notCarried(facts: ClusterFacts, type: Parameters<typeof reachProblem>[1]): Found[] {
  return need(facts.peers).flatMap((peer): Found[] => {
    const problem = peer.spec.suspended ? undefined : reachProblem(peer, type);
    if (problem === undefined || problem.reason === 'Pending') return [];
    const isMild = problem.status === 'Unknown' || !hasHad(facts, 'xds');
    return [
      {
        subject: `Peer ${keyOf(peer)}`,
        message: `${problem.reason}: ${problem.message}`,
        since: problem.lastTransitionTime,
        ...(isMild ? { severity: 'warning' as const } : {}),
      },
    ];
  });
}

function sidesOf({ status }: Peer): [string, PeerSideStatus][] {
  const sides: [string, PeerSideStatus | undefined][] = [
    ['taking', status?.consumer],
    ['giving', status?.owner],
  ];
  return sides.flatMap(([direction, side]) => (side === undefined ? [] : [[direction, side]]));
}

function withdrawal({ spec, status }: Peer): string {
  const retentionSeconds = spec.retentionSeconds ?? peerDefaults.retentionSeconds;
  const services = `its ${status?.consumer?.services ?? 0} services`;
  if (retentionSeconds === 0) return `${services} stay`;
  const leftSeconds = Math.max(0, retentionSeconds - (status?.consumer?.awaySeconds ?? 0));
  return `${services} are withdrawn in ${formatElapsed(1000 * leftSeconds)}`;
}

function nothingSelected({ peerExports, services, imports }: ClusterFacts): Found[] {
  const all = [...need(services), ...need(imports).map(serviceOfImport)];
  return need(peerExports)
    .filter((one) => !all.some((service) => isSameNamespace(one, service) && exportsService(one, service)))
    .map((one) => ({ subject: `PeerExport ${keyOf(one)}`, message: 'it selects no Service of its namespace' }));
}

function isSameNamespace(a: { metadata: { namespace?: string } }, b: { metadata: { namespace?: string } }): boolean {
  return a.metadata.namespace === b.metadata.namespace;
}

function unknownPeers({ peerExports, peers }: ClusterFacts): Found[] {
  const known = new Set(need(peers).map(({ metadata }) => metadata.name));
  return need(peerExports).flatMap((one) => {
    const unknown = (one.spec.peers ?? []).filter((peer) => !known.has(peer));
    if (unknown.length === 0) return [];
    return [{ subject: `PeerExport ${keyOf(one)}`, message: `there is no Peer ${unknown.join(', ')}` }];
  });
}
