// Checks of names: resolvers report and answer as the objects say, and federations are known to them. Pure.

import { conditionOf } from '../../kube/objects/conditions.ts';
import { keyOf } from '../../kube/objects/object.ts';
import type { Checks } from '../diagnosis.ts';
import { each, need } from '../facts.ts';
import { silentParts } from './clusterset.ts';

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
  ],
  PTL0506: ({ resolvers }) =>
    each(need(resolvers), ({ resolver, copyProblem }) =>
      copyProblem === '' ? [] : [{ subject: resolver, message: `its names are not copied to disk: ${copyProblem}` }],
    ),
};
