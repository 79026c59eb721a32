// Asks the parts of one kind that report in a cluster, through its home. Several at a time: a part that does not answer is named, and
// hides no other.

import { inParallel } from '../base/in-parallel.ts';
import { listAll } from '../clusterset/explain/set-state.ts';
import type { Answers } from '../doctor/facts.ts';
import type { Client } from '../kube/client/client.ts';
import { type Lease, leaseType } from '../kube/objects/lease.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { type PartName, partLabel, partState } from '../kube/objects/part-lease.ts';
import { describeError } from './exit-codes.ts';

const partsAtOnce = 4;

/** Silent parts have a finding of their own, and are not asked. */
export async function everyPart<T>(
  client: Client,
  { part, nowMs }: { readonly part: PartName; readonly nowMs: number },
  work: (lease: Lease, name: string) => Promise<readonly T[]>,
): Promise<Answers<T>> {
  const labelSelector = `${partLabel}=${part}`;
  const leases = await listAll<Lease>(client, leaseType, { namespace: systemNamespace, labelSelector });
  const running = leases.filter((lease) => partState(lease, nowMs).kind === 'reported');
  const idle = running.length === 0 ? `no ${part} reports; start portolan ${part} to have it asked` : '';
  const answers: T[] = [];
  const unasked: string[] = [];
  await inParallel(running, { atOnceMax: partsAtOnce }, async (lease) => {
    const name = `${part} on ${partState(lease, nowMs).node || lease.metadata.name}`;
    try {
      answers.push(...(await work(lease, name)));
    } catch (error) {
      unasked.push(`${name}: ${describeError(error)}`);
    }
  });
  return { answers, unasked, idle };
}
