// Deletes everything that a list with the same selectors would show.

import type { Answer, Call, Engine } from '../model/call.ts';
import { StatusError } from '../model/status.ts';
import { methodNotAllowed } from '../model/status-errors.ts';
import { parsePlace } from '../model/stored.ts';
import type { Entry } from '../store/store.ts';
import { removeObject } from './delete.ts';
import { readDeleteOptions } from './delete-options.ts';
import { listEntries } from './list.ts';
import { parseListOptions } from './list-options.ts';
import { parseSelection } from './selectors.ts';

export async function removeCollection(engine: Engine, call: Call): Promise<Answer> {
  if (call.served.kind.isNamespaced && call.namespace === '') throw methodNotAllowed();
  const options = readDeleteOptions(engine, call);
  const listOptions = parseListOptions(call.query, false);
  const found = await listEntries(engine, call, parseSelection(call.served.kind, call.query), listOptions);
  for (let at = 0; at < found.entries.length; at += atOnce) {
    await engine.turns.next();
    await Promise.all(found.entries.slice(at, at + atOnce).map((entry) => removeEntry(engine, call, entry, options)));
  }
  return { kind: 'list', list: { revision: engine.store.revision(), entries: found.entries } };
}

/** So many share one commit; a larger collection lets others in between. */
const atOnce = 50;

async function removeEntry(
  engine: Engine,
  call: Call,
  entry: Entry,
  options: ReturnType<typeof readDeleteOptions>,
): Promise<void> {
  const place = parsePlace(call.served.keyPrefix, entry.key);
  try {
    await removeObject(engine, { ...call, ...place }, options);
  } catch (error) {
    // Somebody else was faster.
    if (!(error instanceof StatusError && error.reason === 'NotFound')) throw error;
  }
}
