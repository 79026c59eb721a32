// Checks of traffic: proxies and xDS servers report, imports and external services are carried, and connections by their clusterset IPs succeed.
// Pure.

import type { ServiceImport } from '../../clusterset/kinds/service-import.ts';
import { describeProblems, describeRefusal } from '../../clusterset/rules/access/enforcement.ts';
import { sourceProblemsOf } from '../../clusterset/rules/access/source-problems.ts';
import { networkOf } from '../../clusterset/rules/networks/reach.ts';
import type { MeshExternalService } from '../../external/kinds/mesh-external-service.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { type Condition, type KubernetesObject, keyOf } from '../../kube/objects/object.ts';
import type { Checks, Found } from '../diagnosis.ts';
import { type ClusterFacts, each, hasHad, need } from '../facts.ts';
import { silentParts } from './clusterset.ts';
import { namedTogether } from './named-together.ts';

export const trafficChecks: Checks = {
  PTL0901: ({ connections }) =>
    each(need(connections), ({ service, from, problems }) =>
      problems.map((message) => ({ subject: `${service} from ${from}`, message })),
    ),
  PTL0902: (facts) => silentParts(facts, ['proxy', 'xds']),
  PTL0903: notCarried,
  PTL0904: externalNotReady,
  PTL0905: ({ pairs }) =>
    need(pairs)
      .filter(({ isWell }) => !isWell)
      .map(({ cluster, text, way }) => ({
        subject: `cluster ${cluster}`,
        message: `it is reached ${text}`,
        ...(way === 'gateway' ? { severity: 'warning' as const } : {}),
      })),
  PTL0906: notEnforced,
  PTL0907: refusedCalls,
};

/** Nodes of one cause are one finding. What is wrong with the ranges of members is one, not one for each node. */
function notEnforced(facts: ClusterFacts): Found[] {
  const access = need(facts.access);
  if (access === undefined) return [];
  const ranges = rangeProblems(facts);
  const ofNodes = access.problems.filter(({ message }) => !ranges.some((one) => one.message.endsWith(message)));
  const nodes = [...Map.groupBy(ofNodes, ({ reason }) => reason)].map(([reason, group]) => ({
    subject: reason === 'NoProxy' && group[0]!.node === '' ? `cluster ${facts.cluster}` : 'nodes',
    message: `${reason}: ${describeProblems(group)}`,
    ...(group.every(({ isUnknown }) => isUnknown) ? warning : {}),
  }));
  const { uncovered } = access;
  const open = `${uncovered} ports of Pods with the address of their node are not exported and stay open: such a port cannot be told from one of the node itself`;
  return [...nodes, ...ranges, ...(uncovered === 0 ? [] : [{ subject: 'hostNetwork', message: open, ...warning }])];
}

const warning = { severity: 'warning' } as const;

/** Those of this cluster's network; none if the broker could not be asked: then nodes have the first of them. */
function rangeProblems(facts: ClusterFacts): Found[] {
  if (!('value' in facts.broker) || facts.broker.value.kind !== 'answers') return [];
  const clusters = facts.broker.value.set.state.members.map(({ cluster }) => cluster);
  const own = clusters.find(({ metadata }) => metadata.name === facts.cluster);
  const near = clusters.filter((one) => own === undefined || networkOf(one) === networkOf(own));
  return sourceProblemsOf(near).map(({ reason, message }) => ({
    subject: 'source ranges',
    message: `${reason}: ${message}`,
    ...(reason === 'NoSourceRanges' ? {} : warning),
  }));
}

const refusedLatelyMs = 3_600_000;

function refusedCalls(facts: ClusterFacts): Found[] {
  const access = need(facts.access);
  if (access === undefined) return [];
  const exported = new Set(need(facts.exports).map(keyOf));
  const told = { mode: access.mode, isExported: (key: string) => exported.has(key) };
  return access.refused
    .filter(({ lastAt }) => !(facts.nowMs - Date.parse(lastAt) > refusedLatelyMs))
    .map((one) => ({
      subject: one.service.includes('/') ? `Service ${one.service}` : one.service,
      message: `${describeRefusal(one, told)} (${one.packets} packets, last at ${one.lastAt})`,
    }));
}

/** A reason other than Ready beside status True: it works in another way than the policy asks for. */
function notCarried(facts: ClusterFacts): Found[] {
  const failing = ({ status }: ServiceImport) => {
    const ready = conditionOf(status?.conditions, 'Ready');
    if (ready?.status === 'False' || (ready?.status === 'True' && ready.reason !== 'Ready')) return ready;
    // A part of it: what proxies refused stays as it was, and what they cannot hold is left out.
    const programmed = conditionOf(status?.conditions, 'Programmed');
    return programmed?.status === 'False' ? programmed : undefined;
  };
  return byCause(
    'ServiceImport',
    need(facts.imports).filter((object) => failing(object) !== undefined),
    {
      conditionOf: failing,
      isMild: ({ type, reason }) => type === 'Programmed' || (reason === 'NotCarried' && !hasHad(facts, 'proxy')),
    },
  );
}

function externalNotReady(facts: ClusterFacts): Found[] {
  const failing = (object: MeshExternalService) =>
    ['Accepted', 'Ready']
      .map((type) => conditionOf(object.status?.conditions, type))
      .find((one) => one !== undefined && one.status !== 'True' && !quiet.has(one.reason));
  return byCause('MeshExternalService', need(facts.external).filter(failing), {
    conditionOf: failing,
    isMild: ({ reason, status }) => status === 'Unknown' || (reason === 'NotProgrammed' && !hasHad(facts, 'xds')),
  });
}

/** Not for this cluster; not judged yet; told by the other condition. */
const quiet: ReadonlySet<string> = new Set(['NotVisible', 'Pending', 'NotAccepted']);

interface Judged<T> {
  readonly conditionOf: (object: T) => Condition | undefined;
  /** Whether it is a warning. */
  readonly isMild: (condition: Condition) => boolean;
}

/** Objects of one cause are one finding: without a proxy all of them have it. */
function byCause<T extends KubernetesObject>(kind: string, objects: readonly T[], judged: Judged<T>): Found[] {
  const conditions = new Map(objects.map((object) => [object, judged.conditionOf(object)!]));
  const groups = Map.groupBy(objects, (object) => {
    const { reason, message } = conditions.get(object)!;
    return `${reason}: ${message}`;
  });
  return [...groups].map(([message, group]) => {
    const { subject, prefix } = namedTogether(kind, group.map(keyOf));
    const times = group.flatMap((one) => conditions.get(one)?.lastTransitionTime ?? []).sort();
    const isMild = judged.isMild(conditions.get(group[0]!)!);
    const severity = isMild ? { severity: 'warning' as const } : {};
    return { subject, message: `${prefix}${message}`, since: times[0], ...severity };
  });
}
