// Checks of traffic: proxies and xDS servers report, imports are carried, and connections by their clusterset IPs succeed.
// Pure.

import type { ServiceImport } from '../../clusterset/kinds/service-import.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { keyOf } from '../../kube/objects/object.ts';
import type { Checks, Found } from '../diagnosis.ts';
import { type ClusterFacts, each, need } from '../facts.ts';
import { silentParts } from './clusterset.ts';
import { namedTogether } from './named-together.ts';

export const trafficChecks: Checks = {
  PTL0901: ({ connections }) =>
    each(need(connections), ({ service, from, problems }) =>
      problems.map((message) => ({ subject: `${service} from ${from}`, message })),
    ),
  PTL0902: (facts) => silentParts(facts, ['proxy', 'xds']),
  PTL0903: notCarried,
};

/** Imports of one cause are one finding: without a proxy all of them have it. */
function notCarried(facts: ClusterFacts): Found[] {
  const groups = Map.groupBy(need(facts.imports).filter(isFailing), causeOf);
  return [...groups].map(([message, group]) => {
    const { subject, prefix } = namedTogether('ServiceImport', group.map(keyOf));
    const times = group.flatMap((one) => readyOf(one)?.lastTransitionTime ?? []).sort();
    return {
      subject,
      message: `${prefix}${message}`,
      since: times[0],
      ...(message.startsWith('NotCarried') && !hasHadProxy(facts) ? { severity: 'warning' as const } : {}),
    };
  });
}

/** A reason other than Ready beside status True: it works in another way than the policy asks for. */
function isFailing(object: ServiceImport): boolean {
  const ready = readyOf(object);
  return ready?.status === 'False' || (ready?.status === 'True' && ready.reason !== 'Ready');
}

function causeOf(object: ServiceImport): string {
  const { reason, message } = readyOf(object)!;
  return `${reason}: ${message}`;
}

function readyOf({ status }: ServiceImport) {
  return conditionOf(status?.conditions, 'Ready');
}

function hasHadProxy({ parts }: ClusterFacts): boolean {
  return 'value' in parts && parts.value.some(({ part }) => part === 'proxy');
}
