// Brings objects to a home so that doing it twice is doing it once: makes what is missing, changes what differs, leaves
// what others added. Installs our definitions where the home does not serve them yet.

import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { Host } from '../base/host.ts';
import { isSameJson } from '../base/same-json.ts';
import { sleep, type World } from '../base/world.ts';
import type { Client, ObjectRef } from '../kube/client/client.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../kube/objects/api-error.ts';
import type { Manifest } from '../kube/objects/manifest.ts';
import type { AnyObject, KubernetesObject, ResourceType } from '../kube/objects/object.ts';

export type Outcome = 'made' | 'changed' | 'as it was';

export interface Installed<T extends KubernetesObject = KubernetesObject> {
  readonly object: T;
  readonly outcome: Outcome;
}

const attemptsMax = 5;

export async function install<T extends KubernetesObject>(client: Client, wanted: Manifest<T>): Promise<Installed<T>> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await installOnce(client, wanted);
    } catch (error) {
      // Somebody wrote between our reading and our writing.
      if (attempt === attemptsMax || !(isConflict(error) || isAlreadyExists(error))) throw error;
    }
  }
}

async function installOnce<T extends KubernetesObject>(client: Client, { type, object }: Manifest<T>) {
  const present = await find<T>(client, type, object.metadata);
  if (present === undefined) return { object: await client.create<T>(type, object), outcome: 'made' as const };
  const next = combined(present, object);
  if (isSameJson(next, present)) return { object: present, outcome: 'as it was' as const };
  return { object: await client.update<T>(type, next), outcome: 'changed' as const };
}

/** What the installer names is as it says; everything else stays. */
function combined<T extends KubernetesObject>(present: T, wanted: T): T {
  const { labels, annotations, ownerReferences } = wanted.metadata;
  const metadata = {
    ...present.metadata,
    ...(labels === undefined ? {} : { labels: { ...present.metadata.labels, ...labels } }),
    ...(annotations === undefined ? {} : { annotations: { ...present.metadata.annotations, ...annotations } }),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
  };
  const { spec } = present as { spec?: object };
  const wantedSpec = (wanted as { spec?: object }).spec;
  return { ...present, ...wanted, metadata, ...(wantedSpec === undefined ? {} : { spec: { ...spec, ...wantedSpec } }) };
}

export async function find<T extends KubernetesObject = AnyObject>(
  client: Client,
  type: ResourceType,
  ref: ObjectRef,
): Promise<T | undefined> {
  try {
    return await client.get<T>(type, ref);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Whether there was anything to delete. */
export async function remove(client: Client, type: ResourceType, ref: ObjectRef): Promise<boolean> {
  try {
    await client.delete(type, { namespace: ref.namespace, name: ref.name });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

const definitionType: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
};

interface DefinitionsRequest {
  readonly client: Client;
  readonly host: Host;
  readonly world: Pick<World, 'timers'>;
  /** Names of files in deploy/crds, without their ending. */
  readonly names: readonly string[];
}

/** What was made: definitions that are there already are left as they are. Resolves when all of them are served. */
export async function installDefinitions(request: DefinitionsRequest): Promise<string[]> {
  const made: string[] = [];
  for (const name of request.names) {
    const definition = await readDefinition(request.host, name);
    if ((await find(request.client, definitionType, definition.metadata)) !== undefined) continue;
    await install(request.client, { type: definitionType, object: definition });
    made.push(definition.metadata.name);
    await untilServed(request, definition);
  }
  return made;
}

async function readDefinition(host: Host, name: string): Promise<AnyObject> {
  const path = fileURLToPath(new URL(`../../deploy/crds/${name}.yaml`, import.meta.url));
  const text = await host.readText(path);
  if (text === undefined) throw new Error(`definition ${name}: ${path} is missing; is this installation whole?`);
  return parse(text) as AnyObject;
}

const servedLooksMax = 100;
const servedLookMs = 100;

async function untilServed({ client, world }: DefinitionsRequest, definition: AnyObject): Promise<void> {
  const { group, names, versions } = definition['spec'] as {
    group: string;
    names: { plural: string };
    versions: { name: string }[];
  };
  for (let look = 0; look < servedLooksMax; look += 1) {
    const path = `/apis/${group}/${versions[0]?.name}`;
    if ((await servedBy(client, path)).includes(names.plural)) return;
    await sleep(world.timers, servedLookMs);
  }
  throw new Error(`definition ${definition.metadata.name}: made, but the home does not serve it`);
}

async function servedBy(client: Client, path: string): Promise<string[]> {
  try {
    const { resources } = await client.getPath<{ resources?: { name: string }[] }>(path);
    return (resources ?? []).map(({ name }) => name);
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}
