// Events of events.k8s.io once lay in a place of their own, in the words of that group. What is left there from a home of an
// earlier version is moved to the other Events, under the same name; where that name is taken, it is dropped.

import type { AnyObject } from '../../kube/objects/object.ts';
import { newEventType, storedAsCoreEvent } from '../kinds/event.ts';
import type { Engine } from '../model/call.ts';
import { keyPrefixOf } from '../model/kind.ts';
import { encodeStored, textOf } from '../model/stored.ts';
import { forEachEntry } from '../store/each-entry.ts';
import type { Entry } from '../store/store.ts';

const olderPrefix = keyPrefixOf(newEventType);
const prefix = keyPrefixOf(storedAsCoreEvent);

export async function moveOlderEvents(engine: Engine): Promise<void> {
  const served = engine.registry.findPlural(newEventType.group, newEventType.plural);
  if (served === undefined) return;
  const entries: Entry[] = [];
  await forEachEntry(engine.store, olderPrefix, (entry) => entries.push(entry));
  for (const entry of entries) {
    const key = prefix + entry.key.slice(olderPrefix.length);
    const older = { key: entry.key, revision: entry.revision };
    const value = encodeStored(served, JSON.parse(textOf(entry.value)) as AnyObject);
    const moved = await engine.store.commit({
      compares: [older, { key, revision: 0 }],
      writes: [{ key: older.key }, { key, value }],
    });
    if (moved.kind === 'conflict') await engine.store.commit({ compares: [older], writes: [{ key: older.key }] });
  }
}
