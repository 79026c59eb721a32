// The kinds that need to know who may do what, for the parts list.

import type { Kind } from '../kinds/kind.ts';
import { createRbacKinds } from '../kinds/rbac.ts';
import { createReviewKinds } from '../kinds/reviews.ts';
import { createServiceAccountKind } from '../kinds/service-account.ts';
import type { ApiAccess } from './create-access.ts';

export function securityKinds(access: ApiAccess): Kind[] {
  return [createServiceAccountKind(access), ...createRbacKinds(access), ...createReviewKinds(access)];
}
