// The Kubernetes Node: a machine that Pods may be on.

import { parseRange } from '../../base/net/ip.ts';
import { checkOneOf, checkText } from './checks.ts';
import { type FieldError, invalid, required } from './field-error.ts';
import { isLabelValue, isQualifiedName } from './names.ts';
import type { KubernetesObject, ResourceType } from './object.ts';

export const nodeType: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'nodes',
  kind: 'Node',
  isNamespaced: false,
};

export interface Node extends KubernetesObject {
  spec?: {
    podCIDR?: string;
    podCIDRs?: string[];
    unschedulable?: boolean;
    taints?: { key: string; value?: string; effect: string }[];
  };
  status?: {
    conditions?: { type: string; status: string }[];
    addresses?: { type: string; address: string }[];
    capacity?: Record<string, string>;
    allocatable?: Record<string, string>;
    nodeInfo?: { kubeletVersion?: string; osImage?: string; kernelVersion?: string; containerRuntimeVersion?: string };
  };
}

export function applyNodeDefaults(node: Node): void {
  const spec = (node.spec ??= {});
  if (spec.podCIDR && !spec.podCIDRs?.length) spec.podCIDRs = [spec.podCIDR];
  if (!spec.podCIDR && spec.podCIDRs?.[0] !== undefined) spec.podCIDR = spec.podCIDRs[0];
  if (node.status?.capacity !== undefined) node.status.allocatable ??= { ...node.status.capacity };
}

export function validateNode(node: Node): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, cidr] of (node.spec?.podCIDRs ?? []).entries()) {
    const isCidr = cidr.includes('/') && parseRange(cidr) !== undefined;
    const text = 'must be a CIDR such as 10.9.8.0/24 or 2001:db8::/64';
    if (!isCidr) errors.push(invalid(`spec.podCIDRs[${index}]`, cidr, text));
  }
  for (const [index, taint] of (node.spec?.taints ?? []).entries()) {
    const path = `spec.taints[${index}]`;
    checkText(errors, `${path}.key`, taint.key ?? '', isQualifiedName);
    checkText(errors, `${path}.value`, taint.value ?? '', isLabelValue);
    if (!taint.effect) errors.push(required(`${path}.effect`));
    else checkOneOf(errors, `${path}.effect`, taint.effect, ['NoExecute', 'NoSchedule', 'PreferNoSchedule']);
  }
  return errors;
}
