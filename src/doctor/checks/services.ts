// Checks of exports: a Service behind each, no conflict, a target that exists, a ready endpoint. Pure.

import { byKey } from '../../clusterset/explain/set-state.ts';
import { exportToOf, type ServiceExport } from '../../clusterset/kinds/service-export.ts';
import { judgeService } from '../../clusterset/rules/export-conditions.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { serviceNameLabel } from '../../kube/objects/endpoint-slice.ts';
import { keyOf } from '../../kube/objects/object.ts';
import type { Checks, Found } from '../diagnosis.ts';
import { type ClusterFacts, need, needSet } from '../facts.ts';

export const serviceChecks: Checks = {
  PTL0301: ({ exports, services }) => {
    const known = byKey(need(services));
    return need(exports).flatMap((one) => {
      const validity = judgeService(known.get(keyOf(one)), keyOf(one));
      if (validity.kind === 'valid') return [];
      const message =
        validity.reason === 'NoService'
          ? 'there is no Service of that name'
          : `${validity.reason}: ${validity.message}`;
      return [{ subject: `ServiceExport ${keyOf(one)}`, message, since: one.metadata.creationTimestamp }];
    });
  },
  PTL0302: ({ exports }) =>
    need(exports).flatMap((one) => {
      const conflict = conditionOf(one.status?.conditions, 'Conflict');
      if (conflict?.status !== 'True') return [];
      const since = conflict.lastTransitionTime;
      return [{ subject: `ServiceExport ${keyOf(one)}`, message: `${conflict.reason}: ${conflict.message}`, since }];
    }),
  PTL0303: (facts) => [...unknownTargets(facts), ...idlePolicies(facts)],
  PTL0305: (facts) => {
    const exports = new Set(need(facts.exports).map(keyOf));
    const ready = readyEndpoints(facts);
    return need(facts.services)
      .filter((one) => exports.has(keyOf(one)) && !ready.has(keyOf(one)))
      .filter((one) => judgeService(one, keyOf(one)).kind === 'valid')
      .map((one) => ({ subject: `Service ${keyOf(one)}`, message: 'it is exported and has no ready endpoint here' }));
  },
};

function unknownTargets(facts: ClusterFacts): Found[] {
  const limited = need(facts.exports).filter((one) => exportToOf(one) !== undefined);
  const set = needSet(facts);
  if (limited.length === 0 || set === undefined) return [];
  const known = new Set(set.state.members.map(({ id }) => id));
  return limited.flatMap((one: ServiceExport) => {
    const unknown = (exportToOf(one) ?? []).filter((id) => !known.has(id));
    if (unknown.length === 0) return [];
    const message = `it is limited to ${unknown.join(', ')}, which the clusterset does not have`;
    return [{ subject: `ServiceExport ${keyOf(one)}`, message }];
  });
}

function idlePolicies({ policies }: ClusterFacts): Found[] {
  return need(policies)
    .filter(({ status }) => status?.exportedServices === 0)
    .map(({ metadata }) => ({ subject: `ServiceExportPolicy ${metadata.name}`, message: 'it selects no Service' }));
}

function readyEndpoints({ slices }: ClusterFacts): Set<string> {
  const ready = new Set<string>();
  for (const { metadata, endpoints } of need(slices)) {
    const service = metadata.labels?.[serviceNameLabel];
    const isReady = (endpoints ?? []).some(({ conditions }) => conditions?.ready !== false);
    if (service !== undefined && isReady) ready.add(`${metadata.namespace}/${service}`);
  }
  return ready;
}
