// Namespaces: the ones that are always there, and the emptying of those that were deleted. Nothing can be created in a
// namespace that is being deleted, so what is empty once stays empty.

import type { AnyObject } from '../../kube/objects/object.ts';
import type { Engine, Place } from '../model/call.ts';
import type { Served } from '../model/registry.ts';
import { StatusError } from '../model/status.ts';
import { objectKey, parseStored } from '../model/stored.ts';
import { namespaceFinalizers } from '../verbs/admission.ts';
import { create } from '../verbs/create.ts';
import { modify } from '../verbs/modify.ts';
import { isBeingDeleted, namespaceKeyPrefix } from '../verbs/open-namespace.ts';
import { systemCall } from '../verbs/system-call.ts';
import { removeAllBelow } from './emptying.ts';
import { type Background, followStore } from './follow.ts';

const namesAlwaysThere = ['default', 'kube-system', 'portolan-system', 'portolan-external'];
const emptyingFinalizer = 'kubernetes';
const retryMs = 1000;

export async function ensureNamespaces(engine: Engine): Promise<void> {
  const served = namespaceKind(engine);
  for (const name of namesAlwaysThere) {
    if ((await engine.store.get(namespaceKeyPrefix + name)) !== undefined) continue;
    const body: AnyObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await create(engine, systemCall(engine, { served, namespace: '', name: '' }, body)).catch(ignoreExisting);
  }
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof StatusError && error.reason === 'AlreadyExists')) throw error;
}

function namespaceKind(engine: Engine): Served {
  const served = engine.registry.findKind('', 'Namespace');
  if (served === undefined) throw new Error('the kinds that are served do not include Namespace');
  return served;
}

export function createNamespaceEmptying(engine: Engine): Background {
  return followStore({
    engine,
    name: 'namespace emptying',
    prefix: namespaceKeyPrefix,
    onEvent: ({ entry, key }, queue) => {
      if (entry !== undefined && isBeingDeleted(entry)) queue.add(key.slice(namespaceKeyPrefix.length));
    },
    work: async (name) => {
      const served = namespaceKind(engine);
      const entry = await engine.store.get(namespaceKeyPrefix + name);
      if (entry === undefined) return undefined;
      const namespace = parseStored(served, entry);
      if (namespace.metadata.deletionTimestamp === undefined || namespaceFinalizers(namespace).length === 0)
        return undefined;
      if ((await emptyNamespace(engine, name)) > 0) return { requeueAfterMs: retryMs };
      await letGo(engine, { served, namespace: '', name });
      return undefined;
    },
  });
}

/** How many objects are left, held by their finalizers. */
async function emptyNamespace(engine: Engine, namespace: string): Promise<number> {
  let held = 0;
  for (const { group, plural, isNamespaced, storedAs } of engine.registry.kinds()) {
    const served = isNamespaced && storedAs === undefined ? engine.registry.findPlural(group, plural) : undefined;
    if (served === undefined) continue;
    held += await removeAllBelow(engine, served, objectKey(served.keyPrefix, namespace, ''));
  }
  return held;
}

async function letGo(engine: Engine, place: Place): Promise<void> {
  await modify(engine, systemCall(engine, place), {
    part: 'all',
    next: (namespace) => {
      const spec = namespace['spec'] as { finalizers?: string[] };
      spec.finalizers = (spec.finalizers ?? []).filter((finalizer) => finalizer !== emptyingFinalizer);
      return namespace;
    },
  });
}
