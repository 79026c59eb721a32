// Asks the node proxies of all homes of a session, each by way of its home and with the rights of the bearer. Several at a
// time; silent ones are not asked, and one that does not answer hides no other.

import { inParallel } from '../../base/in-parallel.ts';
import { errorText } from '../../base/log.ts';
import { PartAdmin } from '../../kube/client/part-admin.ts';
import { flowReaderRole } from '../../kube/objects/admin-ticket.ts';
import { isForbidden } from '../../kube/objects/api-error.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import { type PartName, partLabel, partState } from '../../kube/objects/part-lease.ts';
import type { HomeWatch } from '../homes/home-watch.ts';

export interface AskedProxy {
  readonly watch: HomeWatch;
  readonly lease: Lease;
  readonly admin: PartAdmin;
}

const atOnceMax = 8;
/** A ticket is good for ten minutes. */
const ticketsMs = 300_000;

export class Proxies {
  readonly #admins = new Map<HomeWatch, { readonly madeMs: number; readonly admin: PartAdmin }>();

  /** Answers, and for each cluster why some are missing; that is empty where all answered. */
  async ask<T>(
    homes: readonly HomeWatch[],
    nowMs: number,
    work: (asked: AskedProxy) => Promise<T>,
    parts: readonly PartName[] = ['proxy'],
  ): Promise<{ readonly answers: readonly T[]; readonly why: ReadonlyMap<HomeWatch, string> }> {
    const answers: T[] = [];
    const why = new Map<HomeWatch, string>();
    await Promise.all(
      homes.map(async (watch) => {
        const failures: string[] = [];
        const leases = partsOf(watch, { nowMs, parts });
        await inParallel(leases, { atOnceMax }, async (lease) => {
          try {
            answers.push(await work({ watch, lease, admin: this.#adminOf(watch, nowMs) }));
          } catch (error) {
            failures.push(isForbidden(error) ? notAllowed : errorText(error));
          }
        });
        why.set(watch, reasonOf(watch, leases.length, failures));
      }),
    );
    return { answers, why };
  }

  #adminOf(watch: HomeWatch, nowMs: number): PartAdmin {
    const known = this.#admins.get(watch);
    if (known !== undefined && nowMs >= known.madeMs && nowMs - known.madeMs < ticketsMs) return known.admin;
    const admin = new PartAdmin(watch.client!);
    this.#admins.set(watch, { madeMs: nowMs, admin });
    return admin;
  }
}

const notAllowed = `you may not see its connections (the ClusterRole ${flowReaderRole}, bound in portolan-system, has the rights)`;

/** Those that report. A home that is not current has none: its Leases are old. */
function partsOf(
  watch: HomeWatch,
  { nowMs, parts }: { readonly nowMs: number; readonly parts: readonly string[] },
): Lease[] {
  if (watch.client === undefined || !watch.isCurrent()) return [];
  return (watch.member?.leases.values() ?? []).filter(
    (lease) => parts.includes(lease.metadata.labels?.[partLabel] ?? '') && partState(lease, nowMs).kind === 'reported',
  );
}

function reasonOf(watch: HomeWatch, asked: number, failures: readonly string[]): string {
  if (!watch.isCurrent()) return 'its home does not answer';
  if (watch.member?.leases.state().kind === 'denied') return 'you may not see its parts (leases in portolan-system)';
  if (asked === 0) return 'no proxy reports there';
  if (failures.length === 0) return '';
  if (failures.includes(notAllowed)) return notAllowed;
  return `${failures.length} of ${asked} proxies did not answer: ${failures[0]}`;
}
