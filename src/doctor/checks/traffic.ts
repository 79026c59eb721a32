// Checks of traffic: proxies and xDS servers report, and connections that were asked for succeed. Pure.

import type { Checks } from '../diagnosis.ts';
import { need } from '../facts.ts';
import { silentParts } from './clusterset.ts';

export const trafficChecks: Checks = {
  PTL0901: ({ connections }) =>
    need(connections).flatMap(({ service, problems }) => problems.map((message) => ({ subject: service, message }))),
  PTL0902: (facts) => silentParts(facts, ['proxy', 'xds']),
};
