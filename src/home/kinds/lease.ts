// The Lease kind and its rules.

import { checkNotNegative } from '../../kube/objects/checks.ts';
import { type FieldError, invalid } from '../../kube/objects/field-error.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { column, nameColumn } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { builtinKind } from './builtin.ts';

export const leaseKind: Kind = builtinKind<Lease>({
  ...leaseType,
  columns: [nameColumn, column<Lease>('Holder', (lease) => lease.spec?.holderIdentity ?? '')],
  validate: validateLease,
  behaviour: { isCreatedByUpdate: true },
});

export function validateLease(lease: Lease): FieldError[] {
  const errors: FieldError[] = [];
  const { leaseDurationSeconds, leaseTransitions } = lease.spec ?? {};
  if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
    errors.push(invalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0'));
  }
  checkNotNegative(errors, 'spec.leaseTransitions', leaseTransitions);
  return errors;
}
