// Checks of traffic: proxies and xDS servers report, and connections by their clusterset IPs succeed. Pure.

import type { Checks } from '../diagnosis.ts';
import { each, need } from '../facts.ts';
import { silentParts } from './clusterset.ts';

export const trafficChecks: Checks = {
  PTL0901: ({ connections }) =>
    each(need(connections), ({ service, from, problems }) =>
      problems.map((message) => ({ subject: `${service} from ${from}`, message })),
    ),
  PTL0902: (facts) => silentParts(facts, ['proxy', 'xds']),
};
