// Encodings of an event are shared between watchers: the store hands all of them the same event, one after the other.
// Only the most recent events are remembered, each in memory of its own size, so the memory it takes is bounded.

import { inOwnMemory } from '../../base/bytes/own-memory.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { EventMemo } from '../model/call.ts';
import { parseStored } from '../model/stored.ts';
import type { Entry, StoreEvent } from '../store/store.ts';

const recentMax = 256;

export function createEventMemo(): EventMemo {
  const forms = createRecent<StoreEvent, Map<string, Buffer>>();
  const objects = createRecent<Entry, AnyObject>();
  // One entry in the words of another kind.
  const views = createRecent<Entry, AnyObject>();
  return {
    bytes: (event, form, make) => {
      const made = forms(event, () => new Map());
      let bytes = made.get(form);
      if (bytes === undefined) made.set(form, (bytes = inOwnMemory(make())));
      return bytes;
    },
    object: (served, entry) => {
      const recent = served.kind.storedAs === undefined ? objects : views;
      return recent(entry, () => parseStored(served, entry));
    },
  };
}

function createRecent<K, V>(): (key: K, make: () => V) => V {
  const recent = new Map<K, V>();
  return (key, make) => {
    let value = recent.get(key);
    if (value !== undefined) return value;
    value = make();
    recent.set(key, value);
    if (recent.size > recentMax) recent.delete(recent.keys().next().value as K);
    return value;
  };
}
