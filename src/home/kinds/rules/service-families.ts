// Which IP families a Service has and which cluster IPs it asks for, given the families the server has addresses of.
// Pure: changes the Service it is given and says what is wrong; taking the addresses is left to the caller.

import { isSameJson } from '../../../base/json.ts';
import { formatIp, type IpFamily, parseIp } from '../../../base/net/ip.ts';
import { type FieldError, invalid } from '../../../kube/objects/field-error.ts';
import type { Service, ServiceSpec } from '../../../kube/objects/service.ts';

/** Before anything is decided: what the type does not have goes, what the update left out stays as it was. */
export function settleServiceFields(service: Service, previous: Service | undefined): void {
  const spec = (service.spec ??= {});
  if (spec.type === 'ExternalName') clearAddresses(spec);
  else if (previous?.spec !== undefined && previous.spec.type !== 'ExternalName') keepAddresses(spec, previous.spec);
  if (spec.type !== 'NodePort' && spec.type !== 'LoadBalancer') clearExposure(spec);
  if (spec.type !== 'LoadBalancer') clearLoadBalancer(spec);
}

function clearAddresses(spec: ServiceSpec): void {
  delete spec.clusterIP;
  delete spec.clusterIPs;
  delete spec.ipFamilies;
  delete spec.ipFamilyPolicy;
  delete spec.internalTrafficPolicy;
}

function clearExposure(spec: ServiceSpec): void {
  for (const port of spec.ports ?? []) delete port.nodePort;
  if (!spec.externalIPs?.length) delete spec.externalTrafficPolicy;
  delete spec.healthCheckNodePort;
}

function clearLoadBalancer(spec: ServiceSpec): void {
  delete spec.allocateLoadBalancerNodePorts;
  delete spec.loadBalancerClass;
  delete spec.loadBalancerSourceRanges;
}

function keepAddresses(spec: ServiceSpec, before: ServiceSpec): void {
  spec.ipFamilyPolicy ??= before.ipFamilyPolicy;
  if (!spec.clusterIP && !spec.clusterIPs?.length && before.clusterIP !== undefined) {
    spec.clusterIP = before.clusterIP;
    spec.clusterIPs = [...(before.clusterIPs ?? [before.clusterIP])];
  }
  if (!spec.ipFamilies?.length && before.ipFamilies !== undefined) spec.ipFamilies = [...before.ipFamilies];
  const isDowngrade = spec.ipFamilyPolicy === 'SingleStack' && before.ipFamilyPolicy !== 'SingleStack';
  if (!isDowngrade) return;
  if (isSameJson(spec.clusterIPs, before.clusterIPs)) spec.clusterIPs = spec.clusterIPs?.slice(0, 1);
  if (isSameJson(spec.ipFamilies, before.ipFamilies)) spec.ipFamilies = spec.ipFamilies?.slice(0, 1);
}

/** Fills in ipFamilyPolicy and ipFamilies. `configured` is the server's families, the preferred one first. */
export function settleServiceFamilies(spec: ServiceSpec, configured: readonly IpFamily[]): FieldError[] {
  if (spec.type === 'ExternalName') return [];
  const isHeadless = spec.clusterIP === 'None';
  if (isHeadless && Object.keys(spec.selector ?? {}).length === 0)
    return settleHeadlessWithoutSelector(spec, configured);
  spec.ipFamilyPolicy ??= 'SingleStack';
  const errors = [...familyErrors(spec, configured), ...policyErrors(spec, configured)];
  if (errors.length > 0) return errors;
  const families = familiesAskedFor(spec);
  if (families.length === 0 && configured[0] !== undefined) families.push(configured[0]);
  const other = configured.find((family) => !families.includes(family));
  if (spec.ipFamilyPolicy !== 'SingleStack' && families.length === 1 && other !== undefined) families.push(other);
  spec.ipFamilies = families;
  return [];
}

// No controller here makes its endpoints, so it may have addresses of a family that the server has none of.
function settleHeadlessWithoutSelector(spec: ServiceSpec, configured: readonly IpFamily[]): FieldError[] {
  spec.ipFamilyPolicy ??= 'RequireDualStack';
  const families: IpFamily[] = spec.ipFamilies?.length ? [...spec.ipFamilies] : [configured[0] ?? 'IPv4'];
  const other = families[0] === 'IPv4' ? 'IPv6' : 'IPv4';
  if (spec.ipFamilyPolicy === 'RequireDualStack' && families.length === 1) families.push(other);
  if (spec.ipFamilyPolicy === 'PreferDualStack' && families.length === 1 && configured.includes(other))
    families.push(other);
  spec.ipFamilies = families;
  return [];
}

function familiesAskedFor(spec: ServiceSpec): IpFamily[] {
  const fromAddresses = (spec.clusterIPs ?? []).map((address) => parseIp(address)?.family);
  const families = spec.ipFamilies?.length ? spec.ipFamilies : fromAddresses.filter((family) => family !== undefined);
  return [...families];
}

function familyErrors(spec: ServiceSpec, configured: readonly IpFamily[]): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, family] of (spec.ipFamilies ?? []).entries()) {
    if (configured.includes(family)) continue;
    errors.push(invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'));
  }
  for (const [index, address] of (spec.clusterIPs ?? []).entries()) {
    const family = parseIp(address)?.family;
    const wanted = spec.ipFamilies?.[index];
    const field = `spec.clusterIPs[${index}]`;
    if (family === undefined) continue;
    if (wanted !== undefined && wanted !== family) {
      errors.push(invalid(field, address, `expected an ${wanted} value as indicated by \`ipFamilies[${index}]\``));
    } else if (!configured.includes(family)) {
      errors.push(invalid(field, address, `${family} is not configured on this cluster`));
    }
  }
  return errors;
}

function policyErrors(spec: ServiceSpec, configured: readonly IpFamily[]): FieldError[] {
  const policy = spec.ipFamilyPolicy;
  const field = 'spec.ipFamilyPolicy';
  if (policy === 'RequireDualStack' && configured.length < 2) {
    return [invalid(field, policy, 'this cluster is not configured for dual-stack services')];
  }
  if (policy !== 'SingleStack') return [];
  const text = (what: string) => `must be RequireDualStack or PreferDualStack when multiple ${what} are specified`;
  if ((spec.clusterIPs ?? []).length > 1) return [invalid(field, policy, text('clusterIPs'))];
  if ((spec.ipFamilies ?? []).length > 1) return [invalid(field, policy, text('ipFamilies'))];
  return [];
}

/** An address once held is kept: only changing the type to and from ExternalName lets go of it. */
export function clusterIpChangeErrors(spec: ServiceSpec, before: ServiceSpec | undefined): FieldError[] {
  if (before === undefined || before.type === 'ExternalName' || spec.type === 'ExternalName') return [];
  const errors: FieldError[] = [];
  for (const index of [0, 1]) {
    const [now, then] = [spec.clusterIPs?.[index], before.clusterIPs?.[index]];
    if (now === undefined || then === undefined || now === then) continue;
    errors.push(invalid(`spec.clusterIPs[${index}]`, spec.clusterIPs, 'may not change once set'));
  }
  const isFirstFamilyChanged = spec.ipFamilies?.[0] !== undefined && before.ipFamilies?.[0] !== undefined;
  if (isFirstFamilyChanged && spec.ipFamilies?.[0] !== before.ipFamilies?.[0] && !isHeadlessSpec(spec)) {
    errors.push(invalid('spec.ipFamilies[0]', spec.ipFamilies, 'may not change once set'));
  }
  return errors;
}

function isHeadlessSpec(spec: ServiceSpec): boolean {
  return spec.clusterIP === 'None';
}

export interface AddressWanted {
  readonly family: IpFamily;
  /** Set when this very address is asked for. */
  readonly address: string | undefined;
}

/** One for each family, in the order in which they stand in clusterIPs. Empty if the Service needs none. */
export function addressesWanted(spec: ServiceSpec): AddressWanted[] {
  if (spec.type === 'ExternalName' || isHeadlessSpec(spec)) return [];
  return (spec.ipFamilies ?? []).map((family, index) => {
    const ip = parseIp(spec.clusterIPs?.[index] ?? '');
    return { family, address: ip === undefined ? undefined : formatIp(ip) };
  });
}
