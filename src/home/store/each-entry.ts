// Every entry under a prefix as of one revision, page by page, so that a large prefix is never in memory at once.

import type { Entry, Store } from './store.ts';

const pageLength = 1000;

/** Returns the revision that all of it was read at: a watch from there misses nothing. */
export async function forEachEntry(
  store: Pick<Store, 'range'>,
  prefix: string,
  see: (entry: Entry) => void,
): Promise<number> {
  let page = await store.range({ prefix, limit: pageLength, countMax: 1 });
  const { revision } = page;
  for (;;) {
    for (const entry of page.entries) see(entry);
    const last = page.entries.at(-1);
    if (page.remaining === 0 || last === undefined) return revision;
    page = await store.range({ prefix, limit: pageLength, countMax: 1, after: last.key, revision });
  }
}
