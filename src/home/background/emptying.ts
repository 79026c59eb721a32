// Deletes everything below a prefix: what a namespace holds, or all objects of a kind that goes.

import type { Engine } from '../model/call.ts';
import type { Served } from '../model/registry.ts';
import { StatusError } from '../model/status.ts';
import { parsePlace } from '../model/stored.ts';
import { removeObject } from '../verbs/delete.ts';
import { systemCall } from '../verbs/system-call.ts';

const pageLength = 100;

/** How many objects are still there afterwards, held by their finalizers. */
export async function removeAllBelow(engine: Engine, served: Served, prefix: string): Promise<number> {
  let held = 0;
  let after: string | undefined;
  for (;;) {
    const page = await engine.store.range({ prefix, limit: pageLength, after });
    if (page.entries.length === 0) return held;
    const isHeld = await Promise.all(page.entries.map((entry) => removeByKey(engine, served, entry.key)));
    held += isHeld.filter(Boolean).length;
    after = page.entries.at(-1)!.key;
  }
}

async function removeByKey(engine: Engine, served: Served, key: string): Promise<boolean> {
  const place = { served, ...parsePlace(served.keyPrefix, key) };
  try {
    const answer = await removeObject(engine, systemCall(engine, place), { isDryRun: false });
    // An object comes back only if it was marked and is still there.
    return answer.kind === 'object';
  } catch (error) {
    if (error instanceof StatusError && error.reason === 'NotFound') return false;
    throw error;
  }
}
