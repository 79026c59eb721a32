// Keeps what this cluster says of itself, its id and its clusterset, for as long as it is a member: others know it by them.
// To use another id, leave and join again.

import type { WorkResult } from '../../base/queue.ts';
import { apply } from '../../kube/client/apply.ts';
import type { InformerReader } from '../../kube/controller/informer.ts';
import { createPutBacks } from '../../kube/controller/put-backs.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import type { AgentContext } from '../copies/context.ts';
import { type ClusterProperty, clusterPropertyType } from '../kinds/cluster-property.ts';
import { clusterProperties } from '../membership/membership.ts';

/** The kind may be installed later. */
const unservedRetryMs = 60_000;

export function createIdentityController(
  { events, home, log, membership, world }: AgentContext,
  properties: Pick<InformerReader<ClusterProperty>, 'get'>,
) {
  const wanted = new Map(clusterProperties(membership).map(({ object }) => [object.metadata.name, object]));
  const putBacks = createPutBacks(world.clock);

  async function reconcile(name: string): Promise<WorkResult | undefined> {
    const property = wanted.get(name);
    const present = properties.get(name);
    if (property === undefined || present?.spec.value === property.spec.value) return undefined;
    const waitMs = putBacks.waitMs(name, property.spec);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    try {
      await write(present, property);
    } catch (error) {
      if (isNotFound(error)) return { requeueAfterMs: unservedRetryMs };
      throw error;
    }
    putBacks.wrote(name, property.spec);
    return undefined;
  }

  async function write(present: ClusterProperty | undefined, property: ClusterProperty): Promise<void> {
    const change = (there: ClusterProperty | undefined) => (there ? { ...there, spec: property.spec } : property);
    await apply({ client: home, type: clusterPropertyType, present, change });
    if (present === undefined) return;
    log.warn('cluster property was changed, put back; a changed id is leave and join', {
      property: present.metadata.name,
      found: present.spec.value,
      value: property.spec.value,
    });
    const message = `changed from ${present.spec.value} back to ${property.spec.value}; to use another id, leave the clusterset and join again`;
    await events.record({ about: present, type: 'Warning', reason: 'PropertyPutBack', message });
  }

  return { reconcile, names: [...wanted.keys()] };
}
