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
import { isOurs } from '../kube/objects/ours.ts';
import { CommandError } from './exit-codes.ts';
import {
  type Definition,
  type DefinitionSpec,
  definitionType,
  migrateStoredVersions,
  storageVersion,
} from './stored-versions.ts';

interface DefinitionsRequest {
  readonly client: Client;
  readonly host: Host;
  readonly world: Pick<World, 'timers'>;
  /** Names of files in deploy/crds, without their ending. */
  readonly names: readonly string[];
}

/** Names of the definitions that were made or upgraded. Resolves when all of them are served and stored in one version. */
export async function installDefinitions(request: DefinitionsRequest): Promise<string[]> {
  const { client } = request;
  const written: string[] = [];
  for (const name of request.names) {
    const definition = await readDefinition(request.host, name);
    const present = await getOrUndefined<Definition>(client, definitionType, definition.metadata);
    if (present !== undefined && isForeign(present, definition)) continue;
    if (present === undefined || !holds(present.spec, definition.spec)) {
      await upgrade(client, present, definition);
      written.push(definition.metadata.name);
      await untilServed(request, definition);
    }
    if (present !== undefined) await migrateStoredVersions(client, definition.metadata.name);
  }
  return written;
}

/**
 * A version that we no longer have may not go while objects are stored in it: it stays until they have been written anew,
 * and goes then.
 */
async function upgrade(client: Client, present: Definition | undefined, wanted: Definition): Promise<void> {
  const write = (from: Definition | undefined, spec: DefinitionSpec) =>
    apply<Definition>({
      client,
      type: definitionType,
      present: from,
      change: mergeInto<Definition>({ ...wanted, spec }),
      onConflict: 'retry',
    });
  const stored = present?.status?.storedVersions ?? [];
  const kept = (present?.spec.versions ?? [])
    .filter(({ name }) => stored.includes(name) && !wanted.spec.versions.some((one) => one.name === name))
    .map((version) => ({ ...version, storage: false }));
  const { object } = await write(present, { ...wanted.spec, versions: [...wanted.spec.versions, ...kept] });
  if (kept.length === 0) return;
  await migrateStoredVersions(client, wanted.metadata.name);
  await write(await client.get<Definition>(definitionType, object.metadata), wanted.spec);
}

/**
 * Those of the Multi-Cluster Services API belong to their first installer, unless that was us. Our first releases did not
 * label them, and tools replace the label by their own; the description is ours in every release.
 */
function isForeign(present: Definition, ours: Definition): boolean {
  if (present.spec.group === ourGroup || isOurs(present)) return false;
  const own = new Set(descriptionsOf(ours));
  return !descriptionsOf(present).some((text) => own.has(text));
}

function descriptionsOf({ spec }: Definition): string[] {
  return spec.versions.flatMap((version) => {
    const { schema } = version as { schema?: { openAPIV3Schema?: { description?: unknown } | null } | null };
    const description = schema?.openAPIV3Schema?.description;
    return typeof description === 'string' ? description.replace(/\s+/g, ' ').trim() : [];
  });
}

const ourGroup = 'portolan.dev';

/** Throws if one of somebody else lacks the version that we use; else returns whose definitions are used, in lines. */
export async function refuseForeignDefinitions(request: DefinitionsRequest): Promise<string[]> {
  const notes: string[] = [];
  for (const file of request.names) {
    const ours = await readDefinition(request.host, file);
    const { metadata, spec } = ours;
    const present = await getOrUndefined<Definition>(request.client, definitionType, metadata);
    if (present === undefined || !isForeign(present, ours)) continue;
    const needed = storageVersion(spec);
    const served = present.spec.versions.filter((version) => version.served).map(({ name }) => name);
    if (!served.includes(needed)) {
      throw new CommandError(
        'refused',
        `definition ${metadata.name} of this cluster belongs to another implementation and serves ${served.join(', ') || 'no version'}, not ${needed}; apply deploy/crds/${file}.yaml, which serves v1alpha1 with the same fields too, and try again`,
      );
    }
    if (!holds(present.spec, spec))
      notes.push(
        `definition ${metadata.name} belongs to another implementation and is kept; stop its controller, or both will write the same objects`,
      );
  }
  return notes;
}

/** Whether everything that is wanted is there. An API server fills in defaults, so more may be there. */
function holds(present: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return present === wanted;
  if (typeof present !== 'object' || present === null) return false;
  if (Array.isArray(wanted) && wanted.length !== (present as unknown[]).length) return false;
  return Object.entries(wanted).every(([key, value]) => holds((present as Record<string, unknown>)[key], value));
}

async function readDefinition(host: Host, name: string): Promise<Definition> {
  return parse(await readText(host, name)) as Definition;
}

/** In YAML, for kubectl. */
export function definitionTexts(host: Host, names: readonly string[]): Promise<string[]> {
  return Promise.all(names.map((name) => readText(host, name)));
}

async function readText(host: Host, name: string): Promise<string> {
  const path = fileURLToPath(new URL(`../../deploy/crds/${name}.yaml`, import.meta.url));
  const text = await host.readText(path);
  if (text === undefined) throw new Error(`definition ${name}: ${path} is missing; is this installation whole?`);
  return text;
}

const servedLooksMax = 100;
const servedLookMs = 100;

async function untilServed({ client, world }: DefinitionsRequest, definition: Definition): Promise<void> {
  const { group, names, versions } = definition.spec;
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
