// Installs our definitions in a home that does not serve them yet.

import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { Host } from '../base/host.ts';
import { sleep, type World } from '../base/world.ts';
import { getOrUndefined } from '../kube/client/absent.ts';
import { install } from '../kube/client/apply.ts';
import type { Client } from '../kube/client/client.ts';
import { isNotFound } from '../kube/objects/api-error.ts';
import type { AnyObject, ResourceType } from '../kube/objects/object.ts';

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
    if ((await getOrUndefined(request.client, definitionType, definition.metadata)) !== undefined) continue;
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
