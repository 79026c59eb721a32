// Counts the open watches, refuses one too many, and can end them all.

import type { OpenWatches } from './call.ts';
import { tooManyRequests } from './status-errors.ts';

export function createOpenWatches(openMax: number): OpenWatches {
  const open = new Set<() => void>();
  return {
    enter: (close) => {
      if (open.size >= openMax)
        throw tooManyRequests(`too many watches are open, at most ${openMax} are allowed; try again later`);
      open.add(close);
      return () => open.delete(close);
    },
    count: () => open.size,
    closeAll: () => {
      for (const close of [...open]) close();
    },
  };
}
