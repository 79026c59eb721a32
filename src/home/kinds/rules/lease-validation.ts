// What a Lease must not say.

import { checkNotNegative } from '../../../kube/objects/checks.ts';
import { type FieldError, invalid } from '../../../kube/objects/field-error.ts';
import type { Lease } from '../../../kube/objects/lease.ts';

export function validateLease(lease: Lease): FieldError[] {
  const errors: FieldError[] = [];
  const { leaseDurationSeconds, leaseTransitions } = lease.spec ?? {};
  if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
    errors.push(invalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0'));
  }
  checkNotNegative(errors, 'spec.leaseTransitions', leaseTransitions);
  return errors;
}
