// Validation of a Service, independent of the server's addresses. Fields that belong to another type of Service are
// refused only if they were set now: a change of the type need not clear the old ones.

import { isDnsLabel, isDnsSubdomain } from '../../../base/dns/labels.ts';
import { isSameJson } from '../../../base/json.ts';
import { parseIp, parseRange } from '../../../base/net/ip.ts';
import {
  checkLabels,
  checkOneOf,
  checkPortNumber,
  checkRequiredText,
  checkText,
  checkUnique,
} from '../../../kube/objects/checks.ts';
import { type FieldError, forbidden, invalid, required, tooMany } from '../../../kube/objects/field-error.ts';
import { isPortName, isQualifiedName } from '../../../kube/objects/names.ts';
import type { Service, ServicePort, ServiceSpec } from '../../../kube/objects/service.ts';

const ipText = 'must be an IP address such as 10.9.8.7 or 2001:db8::7';
const cidrText = 'must be a CIDR such as 10.9.8.0/24 or 2001:db8::/64';
const affinityTimeoutSecondsMax = 86_400;

export function validateService(service: Service, previous: Service | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const spec = service.spec ?? {};
  checkOneOf(errors, 'spec.type', spec.type, ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']);
  checkPorts(errors, spec, previous?.spec);
  checkLabels(errors, 'spec.selector', spec.selector);
  checkAffinity(errors, spec);
  checkFamilies(errors, spec);
  checkClusterIps(errors, spec);
  if (spec.type === 'ExternalName') checkExternalName(errors, spec, previous?.spec);
  checkExposure(errors, spec, previous?.spec);
  checkOneOf(errors, 'spec.internalTrafficPolicy', spec.internalTrafficPolicy, ['Cluster', 'Local']);
  checkOneOf(errors, 'spec.trafficDistribution', spec.trafficDistribution, [
    'PreferClose',
    'PreferSameNode',
    'PreferSameZone',
  ]);
  return errors;
}

function checkPorts(errors: FieldError[], spec: ServiceSpec, previous: ServiceSpec | undefined): void {
  const ports = spec.ports ?? [];
  const isHeadless = spec.clusterIP === 'None';
  if (ports.length === 0 && !isHeadless && spec.type !== 'ExternalName') errors.push(required('spec.ports'));
  for (const [index, port] of ports.entries()) checkPort(errors, `spec.ports[${index}]`, port, ports.length > 1);
  checkUnique(errors, ports, { of: (port) => port.name || undefined, field: (index) => `spec.ports[${index}].name` });
  checkNodePorts(errors, spec, previous);
}

function checkPort(errors: FieldError[], path: string, port: ServicePort, needsName: boolean): void {
  if (needsName || port.name) checkRequiredText(errors, `${path}.name`, port.name, isDnsLabel);
  if (port.port !== undefined) checkPortNumber(errors, `${path}.port`, port.port);
  checkOneOf(errors, `${path}.protocol`, port.protocol, ['SCTP', 'TCP', 'UDP']);
  if (typeof port.targetPort === 'string') checkText(errors, `${path}.targetPort`, port.targetPort, isPortName);
  else if (port.targetPort !== undefined && port.targetPort !== port.port) {
    checkPortNumber(errors, `${path}.targetPort`, port.targetPort);
  }
  if (port.appProtocol !== undefined) checkText(errors, `${path}.appProtocol`, port.appProtocol, isQualifiedName);
}

function checkNodePorts(errors: FieldError[], spec: ServiceSpec, previous: ServiceSpec | undefined): void {
  const ports = spec.ports ?? [];
  const before = new Set(previous?.ports?.map((port) => port.nodePort));
  const hasNodePorts = spec.type === 'NodePort' || spec.type === 'LoadBalancer';
  for (const [index, { nodePort }] of ports.entries()) {
    if (nodePort === undefined) continue;
    const field = `spec.ports[${index}].nodePort`;
    checkPortNumber(errors, field, nodePort);
    if (!hasNodePorts && !before.has(nodePort)) {
      errors.push(forbidden(field, `may not be used when \`type\` is '${spec.type}'`));
    }
  }
  const identityOf = (port: ServicePort) => (port.nodePort ? `${port.nodePort}/${port.protocol}` : undefined);
  checkUnique(errors, ports, { of: identityOf, field: (index) => `spec.ports[${index}].nodePort` });
}

function checkAffinity(errors: FieldError[], spec: ServiceSpec): void {
  checkOneOf(errors, 'spec.sessionAffinity', spec.sessionAffinity, ['ClientIP', 'None']);
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
  if (seconds === undefined || (seconds > 0 && seconds <= affinityTimeoutSecondsMax)) return;
  const field = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds';
  errors.push(invalid(field, seconds, `must be greater than 0 and less than ${affinityTimeoutSecondsMax}`));
}

function checkFamilies(errors: FieldError[], spec: ServiceSpec): void {
  const policies = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];
  checkOneOf(errors, 'spec.ipFamilyPolicy', spec.ipFamilyPolicy, policies);
  const families = spec.ipFamilies ?? [];
  for (const [index, family] of families.entries()) {
    checkOneOf(errors, `spec.ipFamilies[${index}]`, family, ['IPv4', 'IPv6']);
  }
  if (families.length > 2) errors.push(tooMany('spec.ipFamilies', families.length, 2));
  checkUnique(errors, families, { of: (family) => family, field: (index) => `spec.ipFamilies[${index}]` });
}

function checkClusterIps(errors: FieldError[], spec: ServiceSpec): void {
  const addresses = spec.clusterIPs ?? [];
  if (addresses.length > 2) errors.push(tooMany('spec.clusterIPs', addresses.length, 2));
  if (addresses.length > 0 && !spec.clusterIP) {
    errors.push(invalid('spec.clusterIPs', addresses, 'must be empty when `clusterIP` is not specified'));
  } else if (addresses.length > 0 && addresses[0] !== spec.clusterIP) {
    errors.push(invalid('spec.clusterIPs', addresses, 'first value must match `clusterIP`'));
  }
  for (const [index, address] of addresses.entries()) checkClusterIp(errors, address, { index, spec });
  const [first, second] = addresses.map((address) => parseIp(address)?.family);
  if (first !== undefined && first === second) {
    errors.push(invalid('spec.clusterIPs', addresses, 'may specify no more than one IP for each IP family'));
  }
}

function checkClusterIp(errors: FieldError[], address: string, place: { index: number; spec: ServiceSpec }): void {
  const field = `spec.clusterIPs[${place.index}]`;
  const { type, clusterIPs = [] } = place.spec;
  if (address !== 'None') {
    const text = place.index === 0 ? "must be empty, 'None', or a valid IP address" : ipText;
    if (parseIp(address) === undefined) errors.push(invalid(field, address, text));
    return;
  }
  if (place.index > 0) errors.push(invalid(field, address, ipText));
  else if (clusterIPs.length > 1) {
    errors.push(invalid('spec.clusterIPs', clusterIPs, "'None' must be the first and only value"));
  }
  if (type === 'NodePort' || type === 'LoadBalancer') {
    errors.push(invalid(field, address, `may not be set to 'None' for ${type} services`));
  }
}

function checkExternalName(errors: FieldError[], spec: ServiceSpec, previous: ServiceSpec | undefined): void {
  checkRequiredText(errors, 'spec.externalName', spec.externalName, (text) => isDnsSubdomain(text.replace(/\.$/, '')));
  for (const field of ['clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) {
    if (!isSet(spec[field]) || isSameJson(spec[field], previous?.[field])) continue;
    errors.push(forbidden(`spec.${field}`, 'may not be set for ExternalName services'));
  }
}

function checkExposure(errors: FieldError[], spec: ServiceSpec, previous: ServiceSpec | undefined): void {
  for (const [index, address] of (spec.externalIPs ?? []).entries()) {
    if (parseIp(address) === undefined) errors.push(invalid(`spec.externalIPs[${index}]`, address, ipText));
  }
  for (const [index, range] of (spec.loadBalancerSourceRanges ?? []).entries()) {
    const isCidr = range.includes('/') && parseRange(range.trim()) !== undefined;
    if (!isCidr) errors.push(invalid(`spec.loadBalancerSourceRanges[${index}]`, range, cidrText));
  }
  checkOneOf(errors, 'spec.externalTrafficPolicy', spec.externalTrafficPolicy, ['Cluster', 'Local']);
  checkOnlyFor(errors, spec, previous);
}

const loadBalancerFields = ['loadBalancerSourceRanges', 'allocateLoadBalancerNodePorts', 'loadBalancerClass'] as const;

function checkOnlyFor(errors: FieldError[], spec: ServiceSpec, previous: ServiceSpec | undefined): void {
  const isLoadBalancer = spec.type === 'LoadBalancer';
  for (const field of loadBalancerFields) {
    if (isLoadBalancer || !isSet(spec[field]) || isSameJson(spec[field], previous?.[field])) continue;
    errors.push(forbidden(`spec.${field}`, "may only be used when `type` is 'LoadBalancer'"));
  }
  const isExposed = isLoadBalancer || spec.type === 'NodePort' || (spec.externalIPs ?? []).length > 0;
  const policy = spec.externalTrafficPolicy;
  if (isExposed || !isSet(policy) || policy === previous?.externalTrafficPolicy) return;
  errors.push(invalid('spec.externalTrafficPolicy', policy, 'may only be set for externally-accessible services'));
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0);
}
