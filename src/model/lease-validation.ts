// What a Lease must not say.

import { checkNotNegative } from './checks.ts';
import { type FieldError, invalid } from './field-error.ts';
import type { Lease } from './lease.ts';

export function validateLease(lease: Lease): FieldError[] {
  const errors: FieldError[] = [];
  const { leaseDurationSeconds, leaseTransitions } = lease.spec ?? {};
  if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
    errors.push(invalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0'));
  }
  checkNotNegative(errors, 'spec.leaseTransitions', leaseTransitions);
  return errors;
}
