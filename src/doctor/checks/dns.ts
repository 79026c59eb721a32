// Checks of names: resolvers report and answer as the objects say, and federations are known to them. Pure.

import { formatElapsed } from '../../base/text/elapsed.ts';
import type { ServiceShardSpec } from '../../clusterset/kinds/service-shard.ts';
import { overdueMs } from '../../clusterset/rules/leases/heartbeat-rate.ts';
import { authorityRenewMs, type Federation } from '../../federation/kinds/federation.ts';
import { conditionOf, formatTime } from '../../kube/objects/conditions.ts';
import { keyOf } from '../../kube/objects/object.ts';
import type { Checks, Found } from '../diagnosis.ts';
import { type ClusterFacts, each, need, needSet } from '../facts.ts';
import { silentParts } from './clusterset.ts';
import { namedTogether } from './named-together.ts';

/** Services of this cluster that federated names lead to, and no address of which can be used here. */
function unreachableShards(facts: ClusterFacts): Found[] {
  const federations = need(facts.federations).filter(({ spec }) => spec?.clusters?.includes(facts.cluster) ?? true);
  const own = needSet(facts)?.state.members.find(({ id }) => id === facts.cluster);
  if (federations.length === 0 || own === undefined) return [];
  const keys = [...own.shards].filter(([, { spec }]) => isUnreachable(spec)).map(([key]) => key);
  if (keys.length === 0) return [];
  const { subject, prefix } = namedTogether('Service', keys);
  const names = federations.map(({ metadata }) => metadata.name).join(', ');
  return [{ subject, message: `${prefix}federation ${names} has no address of it for clients here` }];
}

function isUnreachable({ type, readyEndpoints = 0, clusterIPs, localIPs, loadBalancer }: ServiceShardSpec): boolean {
  const addresses = [clusterIPs, localIPs, loadBalancer].flatMap((list): unknown[] => list ?? []);
  return type === 'ClusterSetIP' && readyEndpoints > 0 && addresses.length === 0;
}

export const dnsChecks: Checks = {
  PTL0501: (facts) => silentParts(facts, ['dns']),
  PTL0502: ({ resolvers }) =>
    each(need(resolvers), ({ resolver, stale, why }) => {
      if (stale.length === 0) return [];
      return [{ subject: resolver, message: `it answers ${stale.join(', ')} from old data${why && `: ${why}`}` }];
    }),
  PTL0503: ({ asked }) =>
    each(need(asked), ({ name, resolver, wanted, got }) => {
      const subject = `${name} at ${resolver}`;
      const expected = `expected ${wanted.join(', ')}`;
      if (typeof got === 'string') return [{ subject, message: `it answers ${got}, ${expected}` }];
      if (wanted.every((ip) => got.includes(ip))) return [];
      return [{ subject, message: `it answers ${got.join(', ') || 'no address'}, ${expected}` }];
    }),
  PTL0504: ({ federations }) =>
    need(federations).flatMap((one) =>
      (one.status?.stubZones ?? [])
        .filter(({ state }) => state !== 'Posted')
        .map(({ cluster, state, message = '' }) => ({
          subject: `Federation ${keyOf(one)}, resolver of cluster ${cluster}`,
          message: `${state}${message === '' ? '' : `: ${message}`}`,
        })),
    ),
  PTL0505: (facts) => [
    ...silentParts(facts, ['authority']),
    ...need(facts.federations)
      .filter(({ status }) => conditionOf(status?.conditions, 'Ready') === undefined)
      .map((one) => ({ subject: `Federation ${keyOf(one)}`, message: 'no authority has written its status' })),
    ...need(facts.federations).flatMap((one) => silentAuthority(one, facts)),
  ],
  PTL0508: ({ clusterDns }) => {
    const found = need(clusterDns);
    if (found === undefined) return [];
    const { zone, forwards, addresses } = found;
    const to = addresses.join(' and ');
    const message =
      forwards.length === 0
        ? `it has no server block for ${zone}: Pods that ask it do not reach portolan-dns at ${to}`
        : `it forwards ${zone} to ${forwards.join(', ')}, and portolan-dns has ${to}`;
    return [{ subject: 'CoreDNS of kube-system', message }];
  },
  PTL0507: unreachableShards,
  PTL0506: ({ resolvers }) =>
    each(need(resolvers), ({ resolver, copyProblem }) =>
      copyProblem === '' ? [] : [{ subject: resolver, message: `its names are not copied to disk: ${copyProblem}` }],
    ),
};

/** By what its leading one writes to the Federation, which every member may read. */
function silentAuthority(federation: Federation, facts: ClusterFacts): Found[] {
  const renewedMs = Date.parse(federation.status?.authority?.renewTime ?? '');
  const agoMs = facts.nowMs - renewedMs;
  const members =
    'value' in facts.broker && facts.broker.value.kind === 'answers' ? facts.broker.value.set.state.members : [];
  const renewMs = authorityRenewMs(members.length);
  if (Number.isNaN(renewedMs) || agoMs <= overdueMs({ renewMs, leaseMs: Number.POSITIVE_INFINITY })) return [];
  const message = `its authority has not reported for ${formatElapsed(agoMs)}`;
  return [{ subject: `Federation ${keyOf(federation)}`, message, since: formatTime(renewedMs) }];
}
