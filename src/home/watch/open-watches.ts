// Counts the open watches, refuses one too many, and can end them all. No user gets more than half of what the others
// leave, so that one who opens all they can does not keep the rest from watching.

import type { OpenWatches } from '../request/call.ts';
import { tooManyRequests } from '../request/status-errors.ts';

export function createOpenWatches(openMax: number): OpenWatches {
  const open = new Set<() => void>();
  const countByUser = new Map<string, number>();
  const leave = (userName: string, close: () => void) => {
    if (!open.delete(close)) return;
    const left = (countByUser.get(userName) ?? 0) - 1;
    if (left > 0) countByUser.set(userName, left);
    else countByUser.delete(userName);
  };
  return {
    enter: (userName, close) => {
      const own = countByUser.get(userName) ?? 0;
      const ownMax = Math.ceil((openMax - (open.size - own)) / 2);
      if (own >= ownMax) {
        throw tooManyRequests(
          `too many watches are open, ${own} of them yours, of at most ${openMax}; try again later`,
        );
      }
      open.add(close);
      countByUser.set(userName, own + 1);
      return () => leave(userName, close);
    },
    count: () => open.size,
    closeAll: () => {
      for (const close of [...open]) close();
    },
  };
}
