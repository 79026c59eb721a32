// What a Pod, or a template of one, has when nobody said otherwise.

import type { Container, Pod, PodSpec, Probe, Volume } from '../../../kube/objects/pod.ts';

export function applyPodDefaults(pod: Pod): void {
  const spec = (pod.spec ??= {});
  applyPodSpecDefaults(spec);
  spec.enableServiceLinks ??= true;
  const status = (pod.status ??= {});
  status.phase ??= 'Pending';
  status.qosClass ??= qosClassOf(spec);
  // The first of several addresses is the one address: whoever knows only one of the two fields finds it.
  if (status.podIP && !status.podIPs?.length) status.podIPs = [{ ip: status.podIP }];
  if (!status.podIP && status.podIPs?.[0] !== undefined) status.podIP = status.podIPs[0].ip;
}

export function applyPodSpecDefaults(spec: PodSpec): void {
  spec.restartPolicy ??= 'Always';
  spec.dnsPolicy ??= 'ClusterFirst';
  spec.schedulerName ??= 'default-scheduler';
  spec.terminationGracePeriodSeconds ??= 30;
  spec.securityContext ??= {};
  if (spec.serviceAccountName) spec.serviceAccount = spec.serviceAccountName;
  else if (spec.serviceAccount) spec.serviceAccountName = spec.serviceAccount;
  for (const container of allContainers(spec)) applyContainerDefaults(container, spec);
  for (const volume of spec.volumes ?? []) applyVolumeDefaults(volume);
}

function allContainers(spec: PodSpec): Container[] {
  return [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
}

function applyContainerDefaults(container: Container, spec: PodSpec): void {
  if (container.image) container.imagePullPolicy ??= isMovingTag(container.image) ? 'Always' : 'IfNotPresent';
  container.terminationMessagePath ??= '/dev/termination-log';
  container.terminationMessagePolicy ??= 'File';
  const resources = (container.resources ??= {});
  if (resources.limits !== undefined) resources.requests = { ...resources.limits, ...resources.requests };
  for (const port of container.ports ?? []) {
    port.protocol ??= 'TCP';
    if (spec.hostNetwork === true) port.hostPort ??= port.containerPort;
  }
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fieldRef !== undefined) valueFrom.fieldRef.apiVersion ??= 'v1';
  }
  applyProbeDefaults(container.livenessProbe);
  applyProbeDefaults(container.readinessProbe);
  applyProbeDefaults(container.startupProbe);
}

/** Without a tag, or with `latest`, the same name may be another image tomorrow. */
function isMovingTag(image: string): boolean {
  if (image.includes('@')) return false;
  const last = image.slice(image.lastIndexOf('/') + 1);
  return !last.includes(':') || last.endsWith(':latest');
}

function applyProbeDefaults(probe: Probe | undefined): void {
  if (probe === undefined) return;
  probe.timeoutSeconds ??= 1;
  probe.periodSeconds ??= 10;
  probe.successThreshold ??= 1;
  probe.failureThreshold ??= 3;
  if (probe.httpGet === undefined) return;
  probe.httpGet.path ??= '/';
  probe.httpGet.scheme ??= 'HTTP';
}

const fileSources = ['secret', 'configMap', 'downwardAPI', 'projected'];
const fileModeDefault = 0o644;

function applyVolumeDefaults(volume: Volume): void {
  const sources = Object.keys(volume).filter((key) => key !== 'name');
  if (sources.length === 0) volume['emptyDir'] = {};
  for (const source of sources.filter((name) => fileSources.includes(name))) {
    (volume[source] as { defaultMode?: number }).defaultMode ??= fileModeDefault;
  }
}

function qosClassOf(spec: PodSpec): string {
  const containers = allContainers(spec);
  const amounts = (each: Container) => [each.resources?.limits ?? {}, each.resources?.requests ?? {}];
  if (containers.every((each) => amounts(each).every((amount) => Object.keys(amount).length === 0)))
    return 'BestEffort';
  const isGuaranteed = containers.every((each) => {
    const [limits = {}, requests = {}] = amounts(each);
    return ['cpu', 'memory'].every((name) => limits[name] !== undefined && limits[name] === requests[name]);
  });
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}
