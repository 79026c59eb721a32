// What Kubernetes' tools expect in every namespace: the ServiceAccount `default`, and the ConfigMap `kube-root-ca.crt` with the
// certificates that clients trust this home by. Both come back when they are deleted, and the certificates follow the authority.

import type { AnyObject } from '../../kube/objects/object.ts';
import type { AuthorityFacts } from '../model/access.ts';
import type { Engine, Place } from '../model/call.ts';
import { keyPrefixOf } from '../model/kind.ts';
import type { Served } from '../model/registry.ts';
import { StatusError } from '../model/status.ts';
import { objectKey, parsePlace, parseStored } from '../model/stored.ts';
import { type Following, followPrefix } from '../store/follow.ts';
import type { StoreEvent } from '../store/store.ts';
import { create } from '../verbs/create.ts';
import { modify } from '../verbs/modify.ts';
import { isBeingDeleted, namespaceKeyPrefix } from '../verbs/open-namespace.ts';
import { systemCall } from '../verbs/system-call.ts';
import { type Background, followStore } from './follow.ts';

const defaultAccountName = 'default';
const rootCertificatesName = 'kube-root-ca.crt';
const certificatesField = 'ca.crt';
const description = 'kubernetes.io/description';
const accountPrefix = keyPrefixOf({ group: '', plural: 'serviceaccounts' });
const configMapPrefix = keyPrefixOf({ group: '', plural: 'configmaps' });
/** Those that are written together share a wait for the disk. */
const concurrency = 16;

export function createNamespaceContents(engine: Engine, authority: AuthorityFacts): Background {
  const followings: Following[] = [];
  let stopListening = () => {};
  let look: (namespace: string) => void = () => {};
  const background = followStore({
    engine,
    name: 'namespace contents',
    prefix: namespaceKeyPrefix,
    concurrency,
    onEvent: ({ entry, key, previous }, queue) => {
      look = (namespace) => queue.add(namespace);
      // Later changes of a Namespace do not change what is to be in it.
      if (entry !== undefined && previous === undefined) queue.add(key.slice(namespaceKeyPrefix.length));
    },
    work: (namespace) => fill(engine, authority, namespace),
  });
  const lookAgain = (prefix: string, wanted: string) => (event: StoreEvent) => {
    if (event.entry !== undefined && event.previous === undefined) return;
    const { namespace, name } = parsePlace(prefix, event.key);
    if (name === wanted) look(namespace);
  };
  return {
    ...background,
    start: async () => {
      await background.start();
      const { store, world, log } = engine;
      for (const [prefix, name] of [
        [accountPrefix, defaultAccountName],
        [configMapPrefix, rootCertificatesName],
      ] as const) {
        const onEvent = lookAgain(prefix, name);
        followings.push(await followPrefix({ store, world, log, prefix, remembersKeys: false, onEvent }));
      }
      stopListening = authority.onChanged(() => void lookAtAll(engine, look));
    },
    stop: async () => {
      stopListening();
      for (const following of followings) following.cancel();
      await background.stop();
    },
  };
}

async function lookAtAll({ store }: Engine, look: (namespace: string) => void): Promise<void> {
  const { entries } = await store.range({ prefix: namespaceKeyPrefix });
  for (const { key } of entries) look(key.slice(namespaceKeyPrefix.length));
}

async function fill(engine: Engine, authority: AuthorityFacts, namespace: string): Promise<undefined> {
  const entry = await engine.store.get(namespaceKeyPrefix + namespace);
  if (entry === undefined || isBeingDeleted(entry)) return undefined;
  try {
    await ensureAccount(engine, namespace);
    await ensureCertificates(engine, namespace, authority.certificates());
  } catch (error) {
    // Deleted meanwhile, or somebody else was first.
    if (!(error instanceof StatusError && ['NotFound', 'AlreadyExists'].includes(error.reason))) {
      if (!(await isGoing(engine, namespace))) throw error;
    }
  }
  return undefined;
}

async function isGoing({ store }: Engine, namespace: string): Promise<boolean> {
  const entry = await store.get(namespaceKeyPrefix + namespace);
  return entry === undefined || isBeingDeleted(entry);
}

async function ensureAccount(engine: Engine, namespace: string): Promise<void> {
  const served = engine.registry.findKind('', 'ServiceAccount');
  if (served === undefined) return;
  if ((await engine.store.get(objectKey(accountPrefix, namespace, defaultAccountName))) !== undefined) return;
  await createIn(engine, served, { namespace, name: defaultAccountName });
}

async function ensureCertificates(engine: Engine, namespace: string, certificates: string): Promise<void> {
  const served = engine.registry.findKind('', 'ConfigMap');
  if (served === undefined) return;
  const place = { served, namespace, name: rootCertificatesName };
  const data = { [certificatesField]: certificates };
  const entry = await engine.store.get(objectKey(configMapPrefix, namespace, rootCertificatesName));
  if (entry === undefined) {
    const annotations = { [description]: 'Certificates of the API server that this namespace is in.' };
    return createIn(engine, served, { namespace, name: rootCertificatesName, annotations }, { data });
  }
  const there = (parseStored(served, entry)['data'] ?? {}) as Record<string, unknown>;
  if (there[certificatesField] === certificates && Object.keys(there).length === 1) return;
  await write(engine, place, data);
}

async function createIn(engine: Engine, served: Served, metadata: AnyObject['metadata'], more = {}): Promise<void> {
  const { namespace = '' } = metadata;
  const body = { apiVersion: served.apiVersion, kind: served.kind.kind, metadata, ...more } as AnyObject;
  await create(engine, systemCall(engine, { served, namespace, name: '' }, body));
}

async function write(engine: Engine, place: Place, data: Record<string, string>): Promise<void> {
  await modify(engine, systemCall(engine, place), {
    part: 'all',
    next: ({ binaryData: _binary, ...current }) => ({ ...current, data }) as AnyObject,
  });
}
