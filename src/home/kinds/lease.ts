// The Lease kind.

import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { builtinKind } from './builtin.ts';
import { column, nameColumn } from './columns.ts';
import type { Kind } from './kind.ts';
import { validateLease } from './rules/lease-validation.ts';

export const leaseKind: Kind = builtinKind<Lease>({
  ...leaseType,
  columns: [nameColumn, column<Lease>('Holder', (lease) => lease.spec?.holderIdentity ?? '')],
  validate: validateLease,
});
