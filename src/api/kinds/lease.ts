// The Lease kind.

import { type Lease, leaseType } from '../../model/lease.ts';
import { validateLease } from '../../model/lease-validation.ts';
import type { Kind } from '../kind.ts';
import { builtinKind } from './builtin.ts';
import { column, nameColumn } from './columns.ts';

export const leaseKind: Kind = builtinKind<Lease>({
  ...leaseType,
  columns: [nameColumn, column<Lease>('Holder', (lease) => lease.spec?.holderIdentity ?? '')],
  validate: validateLease,
});
