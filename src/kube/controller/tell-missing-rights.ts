// Records an Event when the account of a part lacks a right, and when it no longer does: parts name in their Leases what they were
// refused, and only some of them may write Events.

import { errorText, type Log } from '../../base/log.ts';
import { repeat } from '../../base/repeat.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../client/client.ts';
import { type Lease, leaseType } from '../objects/lease.ts';
import { systemNamespace } from '../objects/ours.ts';
import { partLabel } from '../objects/part-lease.ts';
import { partStatuses } from '../objects/part-status.ts';
import type { EventRecorder } from './events.ts';

export interface TellMissingRightsOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly log: Log;
  readonly events: EventRecorder;
}

const lookMs = 30_000;

export function tellMissingRights({ client, world, log, events }: TellMissingRightsOptions): { stop(): void } {
  /** By name of the Lease: the rights that were told. */
  let told = new Map<string, string>();
  async function tell(): Promise<void> {
    const { items } = await client.list<Lease>(leaseType, { namespace: systemNamespace, labelSelector: partLabel });
    const now = new Map<string, string>();
    for (const lease of items) {
      const [part] = partStatuses([lease], world.clock.wallMs());
      // What a silent part was refused may have been granted since.
      if (part?.state !== 'reporting') continue;
      const { name } = lease.metadata;
      const before = told.get(name) ?? '';
      const missing = part.missingRights.join(', ');
      if (missing !== '') now.set(name, missing);
      if (missing === before) continue;
      const about = { ...lease, apiVersion: 'coordination.k8s.io/v1', kind: leaseType.kind };
      if (missing === '')
        await events.record({
          about,
          type: 'Normal',
          reason: 'RightsComplete',
          message: `${part.part}: has all rights`,
        });
      else {
        const message = `${part.part}: its account may not ${missing}; apply the roles of this version (portolan upgrade)`;
        await events.record({ about, type: 'Warning', reason: 'MissingRights', message });
      }
    }
    told = now;
  }

  const stop = repeat(world.timers, { everyMs: lookMs }, () =>
    tell().catch((error: unknown) => log.warn('cannot look for parts that lack rights', { error: errorText(error) })),
  );
  return { stop };
}
