// The Service that stands for a transparent name in a cluster that has none, for DNS servers and data planes that follow Services. It
// has no selector; slices of the import lie behind it. Without the right to write Services there is none, and the policy says so.

import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply } from '../../kube/client/apply.ts';
import { isForbidden, isInvalid } from '../../kube/objects/api-error.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import type { AgentContext } from '../copies/context.ts';
import type { Merge } from '../rules/merge/merged.ts';
import { formatServiceKey, type ServiceKey } from '../rules/names.ts';
import { isStandIn, planStandIn } from '../rules/routing/transparent.ts';

/** Somebody's own Service is left as it is. */
export async function holdStandIn({ copies, home }: AgentContext, service: ServiceKey, merge: Merge): Promise<void> {
  const present = copies.services.get(formatServiceKey(service));
  if (present !== undefined && !isStandIn(present)) return;
  const wanted = planStandIn(service, merge);
  if (wanted.spec!.ports!.length === 0) return;
  const change = (there: Service | undefined): Service => {
    if (there === undefined) return wanted;
    return isStandIn(there) ? { ...there, spec: { ...there.spec, ports: wanted.spec!.ports! } } : there;
  };
  try {
    await apply<Service>({ client: home, type: serviceType, present, change });
  } catch (error) {
    if (!isForbidden(error) && !isInvalid(error)) throw error;
  }
}

export async function dropStandIn({ copies, home }: AgentContext, service: ServiceKey): Promise<void> {
  const present = copies.services.get(formatServiceKey(service));
  if (present !== undefined && isStandIn(present)) await deleteIfPresent(home, serviceType, present.metadata);
}
