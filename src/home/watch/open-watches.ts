// Counts the open watches, refuses one too many, and ends those that lost their right, or all. No user gets more than
// half of what the others leave, so that one who opens all they can does not keep the rest from watching.

import { sleep, type Timers } from '../../base/world.ts';
import type { OpenWatch, OpenWatches } from '../model/call.ts';
import { tooManyRequests } from '../model/status-errors.ts';

/** This many are checked in one turn, without delaying others. */
const reviewedAtOnce = 200;

export function createOpenWatches(openMax: number, timers: Timers): OpenWatches {
  const open = new Set<OpenWatch>();
  const countByUser = new Map<string, number>();
  const bound = new Map<string, Set<OpenWatch>>();
  const leave = (userName: string, watch: OpenWatch) => {
    if (!open.delete(watch)) return;
    for (const key of watch.boundTo) {
      const others = bound.get(key);
      if (others?.delete(watch) && others.size === 0) bound.delete(key);
    }
    const left = (countByUser.get(userName) ?? 0) - 1;
    if (left > 0) countByUser.set(userName, left);
    else countByUser.delete(userName);
  };
  const review = createReview(open, timers);
  return {
    enter: (userName, watch) => {
      const own = countByUser.get(userName) ?? 0;
      const ownMax = Math.ceil((openMax - (open.size - own)) / 2);
      if (own >= ownMax) {
        throw tooManyRequests(
          `too many watches are open, ${own} of them yours, of at most ${openMax}; try again later`,
        );
      }
      open.add(watch);
      for (const key of watch.boundTo) bound.set(key, (bound.get(key) ?? new Set()).add(watch));
      countByUser.set(userName, own + 1);
      return () => leave(userName, watch);
    },
    count: () => open.size,
    closeAll: () => {
      for (const watch of [...open]) watch.end();
    },
    review,
    reviewBoundTo: (key) => {
      const watches = bound.get(key);
      if (watches !== undefined) void reviewAll([...watches], timers);
    },
  };
}

/** Changes that come while a review runs lead to one more, from the start. */
function createReview(open: ReadonlySet<OpenWatch>, timers: Timers): () => void {
  let state: 'idle' | 'running' | 'stale' = 'idle';
  const run = async () => {
    do {
      state = 'running';
      await sleep(timers, 0);
      await reviewAll([...open], timers);
    } while ((state as string) === 'stale');
    state = 'idle';
  };
  return () => {
    if (state !== 'idle') state = 'stale';
    else if (open.size > 0) void run();
  };
}

async function reviewAll(watches: readonly OpenWatch[], timers: Timers): Promise<void> {
  for (let at = 0; at < watches.length; at += reviewedAtOnce) {
    if (at > 0) await sleep(timers, 0);
    await Promise.all(watches.slice(at, at + reviewedAtOnce).map(revokeIfForbidden));
  }
}

async function revokeIfForbidden(watch: OpenWatch): Promise<void> {
  if (!(await watch.isStillAllowed())) watch.revoke();
}
