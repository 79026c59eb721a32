// Deletes the Leases of parts that have been silent for so long that they are taken for removed. Readers leave these out by
// themselves; this keeps a home tidy where machines come and go.

import { errorText, type Log } from '../../base/log.ts';
import { repeat } from '../../base/repeat.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../client/client.ts';
import { isConflict, isNotFound } from '../objects/api-error.ts';
import { type Lease, leaseType } from '../objects/lease.ts';
import { systemNamespace } from '../objects/ours.ts';
import { isForgotten, partLabel } from '../objects/part-lease.ts';

export interface ForgetPartsOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly log: Log;
}

const lookMs = 3_600_000;
/** A home that was just restored, or whose parts all start now, gets time for their first reports. */
const firstLookMs = 300_000;

export function forgetParts({ client, world, log }: ForgetPartsOptions): { stop(): void } {
  async function forget(): Promise<void> {
    const { items } = await client.list<Lease>(leaseType, { namespace: systemNamespace, labelSelector: partLabel });
    const nowMs = world.clock.wallMs();
    for (const { metadata } of items.filter((lease) => isForgotten(lease, nowMs))) {
      const { uid, resourceVersion } = metadata;
      try {
        await client.delete(leaseType, metadata, { preconditions: { uid, resourceVersion } });
        log.info('a part that was silent for three days is taken for removed', { lease: metadata.name });
      } catch (error) {
        // It reports again, or another agent was faster.
        if (!isConflict(error) && !isNotFound(error)) throw error;
      }
    }
  }

  const stop = repeat(world.timers, { everyMs: lookMs, firstMs: firstLookMs }, () =>
    forget().catch((error: unknown) =>
      log.warn('cannot look for Leases of removed parts', { error: errorText(error) }),
    ),
  );
  return { stop };
}
