// Whether something may be created in a namespace: it must be there, and not be on its way out.

import type { Engine, Place } from '../model/call.ts';
import { keyPrefixOf } from '../model/kind.ts';
import { StatusError } from '../model/status.ts';
import { detailsOf } from '../model/status-errors.ts';
import { textOf } from '../model/stored.ts';
import type { Compare, Entry } from '../store/store.ts';

export const namespaceKeyPrefix = keyPrefixOf({ group: '', plural: 'namespaces' });

/** A compare for the commit, so that the answer still holds when the object is written. */
export async function openNamespace(engine: Engine, place: Place, name: string): Promise<Compare> {
  const key = namespaceKeyPrefix + place.namespace;
  const entry = await engine.store.get(key);
  if (entry === undefined) {
    throw new StatusError('NotFound', `namespaces ${JSON.stringify(place.namespace)} not found`, {
      details: { name: place.namespace, kind: 'namespaces' },
    });
  }
  if (isBeingDeleted(entry)) throw terminating(place, name);
  return { key, revision: entry.revision };
}

const deletionWords = '"deletionTimestamp":';

/** Looks for the words first: most objects are not being deleted, and need no parsing to see that. */
export function isBeingDeleted(entry: Entry): boolean {
  return (
    entry.latin1.includes(deletionWords) && JSON.parse(textOf(entry.value)).metadata.deletionTimestamp !== undefined
  );
}

function terminating(place: Place, name: string): StatusError {
  const { served, namespace } = place;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const message = `namespace ${namespace} is being terminated`;
  return new StatusError('Forbidden', `${served.resource} ${JSON.stringify(name)} is forbidden: ${why}`, {
    details: {
      ...detailsOf(served, name),
      causes: [{ reason: 'NamespaceTerminating', message, field: 'metadata.namespace' }],
    },
  });
}
