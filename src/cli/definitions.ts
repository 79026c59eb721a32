// Brings the definitions of a home up to date: missing ones are created, our own that differ are upgraded, and
// foreign definitions of the Multi-Cluster Services API are left as they are.

import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { Host } from '../base/host.ts';
import { sleep, type World } from '../base/world.ts';
import { getOrUndefined } from '../kube/client/absent.ts';
import { apply, mergeInto } from '../kube/client/apply.ts';
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

/** Names of the definitions that were made or upgraded. Resolves when all of them are served. */
export async function installDefinitions(request: DefinitionsRequest): Promise<string[]> {
  const { client } = request;
  const written: string[] = [];
  for (const name of request.names) {
    const definition = await readDefinition(request.host, name);
    const present = await getOrUndefined<AnyObject>(client, definitionType, definition.metadata);
    if (present !== undefined && !isOutdated(present, definition)) continue;
    const change = mergeInto<AnyObject>(definition);
    await apply({ client, type: definitionType, present, change, onConflict: 'retry' });
    written.push(definition.metadata.name);
    await untilServed(request, definition);
  }
  return written;
}

const ourGroup = 'portolan.dev';

/** Definitions of the Multi-Cluster Services API belong to their first installer. */
function isOutdated(present: AnyObject, wanted: AnyObject): boolean {
  const spec = wanted['spec'] as { group?: string } | undefined;
  return spec?.group === ourGroup && !holds(present['spec'], spec);
}

/** Whether everything that is wanted is there. An API server fills in defaults, so more may be there. */
function holds(present: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return present === wanted;
  if (typeof present !== 'object' || present === null) return false;
  if (Array.isArray(wanted) && wanted.length !== (present as unknown[]).length) return false;
  return Object.entries(wanted).every(([key, value]) => holds((present as Record<string, unknown>)[key], value));
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
