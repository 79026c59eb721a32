// Checks the tickets of callers of an admin endpoint, by TokenReview at the home. Anybody in the network may send texts here,
// so only plausible ones are asked about, few at a time, and each once.

import { BoundedCache } from '../../base/bounded-cache.ts';
import type { Clock } from '../../base/world.ts';
import { claimedAudiences, type TicketKind, ticketAudience, ticketUserOf } from '../objects/admin-ticket.ts';
import { isForbidden } from '../objects/api-error.ts';
import type { Client } from './client.ts';
import { reviewToken } from './token-review.ts';

interface TicketRefusal {
  readonly status: 401 | 403 | 429 | 503;
  readonly why: string;
}

export interface TicketCheckOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** The Pod and the URL by which callers name this part. */
  readonly places: () => readonly string[];
}

/** Undefined if the ticket is good, and one of that kind. */
export type TicketCheck = (ticket: string, kind: TicketKind) => Promise<TicketRefusal | undefined>;

/** Whose token it is, or why it is none. */
type Reviewed = { readonly username: string } | TicketRefusal;

const ticketLengthMax = 8_192;
const knownMax = 64;
/** A ticket that was revoked is good for that long. */
const knownMs = 60_000;
const askedAtOnceMax = 4;

export function createTicketCheck({ client, clock, places }: TicketCheckOptions): TicketCheck {
  const known = new BoundedCache<{ readonly untilMs: number; readonly reviewed: Reviewed }>(knownMax);
  let asked = 0;

  async function review(ticket: string, audiences: string[]): Promise<Reviewed> {
    const bearer = await reviewToken(client, ticket, audiences);
    return bearer ?? { status: 401, why: 'the ticket is not valid, or not any more' };
  }

  return async (ticket, kind) => {
    const audiences = places().map(ticketAudience);
    const isPlausible =
      ticket.length <= ticketLengthMax && audiences.some((one) => claimedAudiences(ticket).includes(one));
    if (!isPlausible) return { status: 401, why: 'the ticket is not one for this part' };
    const nowMs = clock.monotonicMs();
    const earlier = known.get(ticket);
    if (earlier !== undefined && nowMs < earlier.untilMs) return refusalIn(earlier.reviewed, kind);
    if (asked >= askedAtOnceMax) return { status: 429, why: 'too many tickets are being checked; try again later' };
    asked += 1;
    try {
      const reviewed = await review(ticket, audiences);
      known.set(ticket, { untilMs: nowMs + knownMs, reviewed });
      return refusalIn(reviewed, kind);
    } catch (error) {
      return { status: 503, why: `the ticket cannot be checked: ${whyUnchecked(error)}` };
    } finally {
      asked -= 1;
    }
  };
}

function refusalIn(reviewed: Reviewed, kind: TicketKind): TicketRefusal | undefined {
  if ('status' in reviewed) return reviewed;
  const wanted = ticketUserOf(kind);
  if (reviewed.username === wanted) return undefined;
  return { status: 403, why: `the ticket is a token of ${reviewed.username}; wanted is one of ${wanted}` };
}

/** The caller may be anybody: nothing of the home's own words goes to it. */
function whyUnchecked(error: unknown): string {
  return isForbidden(error)
    ? 'this part may not create tokenreviews at its home; give its account that right, as portolan install does'
    : 'the home does not answer this part';
}
