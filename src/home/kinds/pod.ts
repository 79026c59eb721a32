// The Pod kind: its columns tell in a word how a Pod is, as kubectl users expect.

import { type Container, type ContainerStatus, type Pod, podType } from '../../kube/objects/pod.ts';
import { column, formatAge, nameColumn, orNone, wideColumn } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { builtinKind } from './builtin.ts';
import { applyPodDefaults, validatePod } from './rules/pod-rules.ts';

export const podKind: Kind = builtinKind<Pod>({
  ...podType,
  hasGeneration: true,
  shortNames: ['po'],
  categories: ['all'],
  columns: [
    nameColumn,
    column<Pod>('Ready', formatReady),
    column<Pod>('Status', formatStatus),
    column<Pod>('Restarts', formatRestarts),
    wideColumn<Pod>('IP', (pod) => orNone(pod.status?.podIP)),
    wideColumn<Pod>('Node', (pod) => orNone(pod.spec?.nodeName)),
    wideColumn<Pod>('Nominated Node', (pod) => orNone(pod.status?.nominatedNodeName)),
    wideColumn<Pod>('Readiness Gates', formatGates),
  ],
  applyDefaults: applyPodDefaults,
  validate: validatePod,
  selectableFields: {
    'spec.nodeName': (pod) => pod.spec?.nodeName ?? '',
    'spec.restartPolicy': (pod) => pod.spec?.restartPolicy ?? '',
    'spec.schedulerName': (pod) => pod.spec?.schedulerName ?? '',
    'spec.serviceAccountName': (pod) => pod.spec?.serviceAccountName ?? '',
    'spec.hostNetwork': (pod) => String(pod.spec?.hostNetwork ?? false),
    'status.phase': (pod) => pod.status?.phase ?? '',
    'status.podIP': (pod) => pod.status?.podIP ?? '',
    'status.podIPs': (pod) => pod.status?.podIPs?.[0]?.ip ?? '',
    'status.nominatedNodeName': (pod) => pod.status?.nominatedNodeName ?? '',
  },
});

function formatReady(pod: Pod): string {
  const ready = (pod.status?.containerStatuses ?? []).filter((status) => status.ready === true).length;
  return `${ready}/${pod.spec?.containers?.length ?? 0}`;
}

function formatStatus(pod: Pod): string {
  if (pod.metadata.deletionTimestamp !== undefined) {
    return pod.status?.reason === 'NodeLost' ? 'Unknown' : 'Terminating';
  }
  const phase = pod.status?.reason || pod.status?.phase || 'Unknown';
  return initTrouble(pod) ?? containerTrouble(pod) ?? (phase === 'Succeeded' ? 'Completed' : phase);
}

/** The first init container that is not done says it all: nothing after it has started. */
function initTrouble(pod: Pod): string | undefined {
  const containers = pod.spec?.initContainers ?? [];
  for (const [index, status] of (pod.status?.initContainerStatuses ?? []).entries()) {
    if (isInitDone(status, containers[index])) continue;
    const { waiting, terminated } = status.state ?? {};
    if (terminated !== undefined) return `Init:${endText(terminated)}`;
    const hasReason = waiting?.reason && waiting.reason !== 'PodInitializing';
    return hasReason ? `Init:${waiting.reason}` : `Init:${index}/${containers.length}`;
  }
  return undefined;
}

function isInitDone(status: ContainerStatus, container: Container | undefined): boolean {
  const isSidecarStarted = container?.restartPolicy === 'Always' && status.started === true;
  return isSidecarStarted || status.state?.terminated?.exitCode === 0;
}

function containerTrouble(pod: Pod): string | undefined {
  let hasRunning = false;
  let found: string | undefined;
  for (const { state, ready } of [...(pod.status?.containerStatuses ?? [])].reverse()) {
    if (state?.waiting?.reason) found = state.waiting.reason;
    else if (state?.terminated !== undefined) found = endText(state.terminated);
    else if (ready === true && state?.running !== undefined) hasRunning = true;
  }
  if (found === 'Completed' && hasRunning) return isReady(pod) ? 'Running' : 'NotReady';
  return found;
}

function endText(end: { reason?: string; exitCode?: number; signal?: number }): string {
  if (end.reason) return end.reason;
  return end.signal ? `Signal:${end.signal}` : `ExitCode:${end.exitCode ?? 0}`;
}

function isReady(pod: Pod): boolean {
  return (pod.status?.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True');
}

function formatRestarts(pod: Pod, nowMs: number): string {
  const statuses = pod.status?.containerStatuses ?? [];
  const count = statuses.reduce((sum, status) => sum + (status.restartCount ?? 0), 0);
  const ends = statuses.map((status) => status.lastState?.terminated?.finishedAt ?? '').sort();
  const last = ends.at(-1);
  return count > 0 && last ? `${count} (${formatAge(last, nowMs)} ago)` : String(count);
}

function formatGates(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  const isTrue = (type: string) =>
    (pod.status?.conditions ?? []).some((condition) => condition.type === type && condition.status === 'True');
  return `${gates.filter((gate) => isTrue(gate.conditionType)).length}/${gates.length}`;
}
