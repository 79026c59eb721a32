// The ResourceQuota kind. Numbers of objects and bytes are enforced by quota/; other names are taken with a warning.

import { type FieldError, forbidden, invalid } from '../../kube/objects/field-error.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import {
  bytesResource,
  parseWholeQuantity,
  type ResourceQuota,
  resourceQuotaType,
} from '../../kube/objects/resource-quota.ts';
import { column, nameColumn } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { builtinKind } from './builtin.ts';

export const resourceQuotaKind: Kind = builtinKind<ResourceQuota>({
  ...resourceQuotaType,
  shortNames: ['quota'],
  columns: [nameColumn, column<ResourceQuota>('Used', formatUse)],
  validate: validateQuota,
  behaviour: { warnings: (object: AnyObject) => notEnforced(object as ResourceQuota) },
});

function formatUse({ spec, status }: ResourceQuota): string {
  return Object.entries(spec?.hard ?? {})
    .map(([name, hard]) => `${name}: ${status?.used?.[name] ?? '0'}/${hard}`)
    .join(', ');
}

function validateQuota({ spec }: ResourceQuota): FieldError[] {
  const errors: FieldError[] = [];
  for (const [name, text] of Object.entries(spec?.hard ?? {})) {
    if (resourceNamed(name) !== undefined && parseWholeQuantity(text) === undefined) {
      errors.push(invalid(`spec.hard[${name}]`, text, 'must be a whole number, such as 500 or 64Mi'));
    }
  }
  if (!isScoped(spec)) return errors;
  // It would be taken for a limit of all of them, and is one of none.
  const others = Object.keys(spec?.hard ?? {}).filter((name) => !isOfPods(name));
  for (const name of others.slice(0, 20))
    errors.push(forbidden(`spec.hard[${name}]`, 'a quota with scopes limits Pods, and nothing else'));
  return errors;
}

/** Scopes choose Pods by what they ask for. */
export function isScoped(spec: ResourceQuota['spec']): boolean {
  return (spec?.scopes?.length ?? 0) > 0 || (spec?.scopeSelector ?? null) !== null;
}

function isOfPods(name: string): boolean {
  const resource = resourceNamed(name);
  return resource === undefined || resource === 'pods';
}

function notEnforced({ spec }: ResourceQuota): string[] {
  if (isScoped(spec)) return ['spec: the embedded home runs no Pods; it does not enforce quotas with scopes'];
  const names = Object.keys(spec?.hard ?? {}).filter((name) => resourceNamed(name) === undefined);
  return names.slice(0, 20).map((name) => `spec.hard[${name}]: the embedded home does not enforce this`);
}

const plainNames = new Set([
  'configmaps',
  'persistentvolumeclaims',
  'pods',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'services',
]);

/** The resource that a name in spec.hard counts, empty for bytes; undefined for one that is not enforced here. */
export function resourceNamed(name: string): string | undefined {
  if (name === bytesResource) return '';
  if (name.startsWith('count/')) return name.slice('count/'.length);
  return plainNames.has(name) ? name : undefined;
}
