// Defaults and rules of a Pod or a template of one, as far as names and references go. Fields that only a machine
// running Pods could judge (images, devices, security) are stored unchanged.

import { isDnsLabel, isDnsSubdomain } from '../../../base/dns/labels.ts';
import { isSameJson } from '../../../base/json.ts';
import { parseIp } from '../../../base/net/ip.ts';
import {
  checkNotNegative,
  checkOneOf,
  checkPortNumber,
  checkRequiredText,
  checkText,
  checkUnique,
} from '../../../kube/objects/checks.ts';
import { duplicate, type FieldError, forbidden, invalid, required } from '../../../kube/objects/field-error.ts';
import { isEnvironmentName, isPortName } from '../../../kube/objects/names.ts';
import type { Container, ContainerPort, Pod, PodSpec, Probe, Volume } from '../../../kube/objects/pod.ts';

export function validatePod(pod: Pod, previous: Pod | undefined): FieldError[] {
  const errors: FieldError[] = [];
  checkPodSpec(errors, 'spec', pod.spec ?? {});
  for (const [index, { ip }] of (pod.status?.podIPs ?? []).entries()) {
    const field = `status.podIPs[${index}].ip`;
    if (parseIp(ip) === undefined) errors.push(invalid(field, ip, 'must be a valid IP address'));
  }
  if (
    previous !== undefined &&
    !isSameJson(fixedPart(pod.spec, previous.spec), fixedPart(previous.spec, previous.spec))
  ) {
    errors.push(forbidden('spec', fixedText));
  }
  return errors;
}

const fixedText =
  'of a Pod only images, activeDeadlineSeconds, tolerations and terminationGracePeriodSeconds can be changed';

/** A Pod that is on no node yet may be put on one: there is no scheduler here to ask. */
function fixedPart(spec: PodSpec | undefined, before: PodSpec | undefined): unknown {
  const withoutImages = (containers: Container[] | undefined) => containers?.map((each) => ({ ...each, image: '' }));
  return {
    ...spec,
    containers: withoutImages(spec?.containers),
    initContainers: withoutImages(spec?.initContainers),
    activeDeadlineSeconds: undefined,
    tolerations: undefined,
    terminationGracePeriodSeconds: undefined,
    nodeName: before?.nodeName ? spec?.nodeName : undefined,
  };
}

export function checkPodSpec(errors: FieldError[], path: string, spec: PodSpec): void {
  const containers = spec.containers ?? [];
  if (containers.length === 0) errors.push(required(`${path}.containers`));
  checkContainers(errors, path, spec);
  checkOneOf(errors, `${path}.restartPolicy`, spec.restartPolicy, ['Always', 'Never', 'OnFailure']);
  const dnsPolicies = ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'];
  checkOneOf(errors, `${path}.dnsPolicy`, spec.dnsPolicy, dnsPolicies);
  for (const field of ['nodeName', 'serviceAccountName', 'schedulerName'] as const) {
    if (spec[field]) checkText(errors, `${path}.${field}`, spec[field], isDnsSubdomain);
  }
  for (const field of ['hostname', 'subdomain'] as const) {
    if (spec[field]) checkText(errors, `${path}.${field}`, spec[field], isDnsLabel);
  }
  checkNotNegative(errors, `${path}.terminationGracePeriodSeconds`, spec.terminationGracePeriodSeconds);
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    checkRequiredText(errors, `${path}.volumes[${index}].name`, volume.name, isDnsLabel);
  }
}

function checkContainers(errors: FieldError[], path: string, spec: PodSpec): void {
  const volumes = new Set((spec.volumes ?? []).map((volume) => volume.name));
  for (const list of ['initContainers', 'containers'] as const) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      checkContainer(errors, `${path}.${list}[${index}]`, container, volumes);
    }
  }
  // Within one list the schema finds two of a name; a Pod's lists share their names too.
  const names = (spec.initContainers ?? []).map((container) => container.name);
  for (const [index, { name }] of (spec.containers ?? []).entries()) {
    if (name && names.includes(name)) errors.push(duplicate(`${path}.containers[${index}].name`, name));
  }
}

function checkContainer(errors: FieldError[], path: string, container: Container, volumes: ReadonlySet<string>): void {
  checkRequiredText(errors, `${path}.name`, container.name, isDnsLabel);
  if (!container.image) errors.push(required(`${path}.image`));
  checkOneOf(errors, `${path}.imagePullPolicy`, container.imagePullPolicy, ['Always', 'IfNotPresent', 'Never']);
  checkContainerPorts(errors, `${path}.ports`, container.ports ?? []);
  for (const [index, variable] of (container.env ?? []).entries()) {
    checkRequiredText(errors, `${path}.env[${index}].name`, variable.name, isEnvironmentName);
  }
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const field = `${path}.volumeMounts[${index}]`;
    if (!mount.name) errors.push(required(`${field}.name`));
    else if (!volumes.has(mount.name)) errors.push(notFound(`${field}.name`, mount.name));
    if (!mount.mountPath) errors.push(required(`${field}.mountPath`));
  }
}

function notFound(field: string, value: string): FieldError {
  return { reason: 'FieldValueNotFound', field, message: `Not found: ${JSON.stringify(value)}` };
}

function checkContainerPorts(errors: FieldError[], path: string, ports: readonly ContainerPort[]): void {
  for (const [index, port] of ports.entries()) {
    const field = `${path}[${index}]`;
    if (port.name) checkText(errors, `${field}.name`, port.name, isPortName);
    if (port.containerPort !== undefined) checkPortNumber(errors, `${field}.containerPort`, port.containerPort);
    if (port.hostPort) checkPortNumber(errors, `${field}.hostPort`, port.hostPort);
    checkOneOf(errors, `${field}.protocol`, port.protocol, ['SCTP', 'TCP', 'UDP']);
  }
  checkUnique(errors, ports, { of: (port) => port.name || undefined, field: (index) => `${path}[${index}].name` });
}

export function applyPodDefaults(pod: Pod): void {
  const spec = (pod.spec ??= {});
  applyPodSpecDefaults(spec);
  spec.enableServiceLinks ??= true;
  const status = (pod.status ??= {});
  status.phase ??= 'Pending';
  status.qosClass ??= qosClassOf(spec);
  // The first of several addresses is the one address, for readers of only one of the two fields.
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
