// Targets that do not exist, as gRPC clients learn of them. A client takes the absence of a listener that it never had for an
// answer to an earlier request, and waits 15 s for another one. A listener that routes nothing fails its calls at once. Only for
// state of the world: the other variant has a word for what is not there.

import { apiListener } from '../bodies.ts';
import type { XdsResource, XdsType } from '../resource.ts';
import { type Entry, makeEntry } from './entry.ts';
import type { View } from './view.ts';

/** Names kept for one stream. Clients that name more, or longer ones, wait for their own time limit. */
const absentMax = 1_000;
const nameLengthMax = 300;

/** The view, with a listener under every name that a client asks for. */
export function withAbsentListeners(view: View): Pick<View, 'get' | 'isInWildcard' | 'wildcard'> {
  const absent = new Map<string, Entry>();
  return {
    get: (type: XdsType, name: string) => {
      const found = view.get(type, name);
      if (found !== undefined) {
        if (type === 'listener') absent.delete(name);
        return found;
      }
      if (type !== 'listener' || name.length > nameLengthMax) return undefined;
      let entry = absent.get(name);
      if (entry === undefined && absent.size < absentMax) {
        entry = makeEntry(absentListener(name));
        absent.set(name, entry);
      }
      return entry;
    },
    isInWildcard: (type, name) => view.isInWildcard(type, name),
    wildcard: (type) => view.wildcard(type),
  };
}

function absentListener(name: string): XdsResource {
  const body = apiListener(name, {
    route_config: { name: 'no such service', virtual_hosts: [{ name, domains: ['*'], routes: [] }] },
  });
  return { type: 'listener', name, body, causes: [], isByNameOnly: true };
}
