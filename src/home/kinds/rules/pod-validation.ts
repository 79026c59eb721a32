// What a Pod, or a template of one, must say, as far as names and references go. What only a machine that runs Pods
// could judge (images, devices, security) is kept as it was given.

import { isDnsLabel, isDnsSubdomain } from '../../../base/dns/labels.ts';
import { parseIp } from '../../../base/ip.ts';
import { isSameJson } from '../../../base/same-json.ts';
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
import type { Container, ContainerPort, Pod, PodSpec } from '../../../kube/objects/pod.ts';

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
