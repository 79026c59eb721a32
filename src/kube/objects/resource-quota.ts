// ResourceQuota: how much a namespace may hold. Whole quantities only: numbers of objects, and bytes.

import type { KubernetesObject, ResourceType } from './object.ts';

export const resourceQuotaType: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'resourcequotas',
  kind: 'ResourceQuota',
  isNamespaced: true,
};

export interface ResourceQuota extends KubernetesObject {
  spec?: { hard?: Record<string, string>; scopes?: string[]; scopeSelector?: object };
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

/** Ours: the bytes of all objects of a namespace as the embedded home stores them. Kubernetes takes it and ignores it. */
export const bytesResource = 'portolan.dev/bytes';

const factors: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** The whole number that a quantity is, rounded up; undefined for a text that is none, or is one of thousandths. */
export function parseWholeQuantity(text: string): number | undefined {
  const [, digits, suffix = ''] = /^\+?(\d{1,15}(?:\.\d{1,9})?)([kMGT]|[KMGT]i)?$/.exec(text) ?? [];
  const factor = factors[suffix];
  return digits === undefined || factor === undefined ? undefined : Math.ceil(Number(digits) * factor);
}
