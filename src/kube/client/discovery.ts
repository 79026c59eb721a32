// Asks a home whether it serves a kind. Only a home that answers its discovery in good order can say no: a proxy's 404
// or a broken answer says nothing.

import { ApiError } from '../objects/api-error.ts';
import type { ResourceType } from '../objects/object.ts';
import { isEmbeddedHome } from '../objects/ours.ts';
import type { Client } from './client.ts';
import { groupVersionPath } from './paths.ts';

interface ResourceList {
  readonly kind?: string;
  readonly resources?: readonly { readonly name: string }[];
}

interface GroupList {
  readonly kind?: string;
  readonly groups?: readonly { readonly name: string; readonly versions?: readonly { readonly version: string }[] }[];
}

/** Whether the home is our own API server, which stores Pods and runs none. Throws when it could not be asked. */
export async function isEmbedded(client: Client): Promise<boolean> {
  return isEmbeddedHome((await client.getPath<{ gitVersion?: unknown } | null>('/version')) ?? {});
}

/** Throws when the home could not be asked or did not answer as discovery does. */
export async function isServed(client: Client, type: ResourceType, signal?: AbortSignal): Promise<boolean> {
  const path = groupVersionPath(type);
  try {
    const answer = await client.getPath<ResourceList>(path, { signal });
    if (answer.kind !== 'APIResourceList') throw new Error(`GET ${path}: not an APIResourceList`);
    return (answer.resources ?? []).some((resource) => resource.name === type.plural);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
    return isInGroupList(client, type, signal);
  }
}

async function isInGroupList(client: Client, type: ResourceType, signal: AbortSignal | undefined): Promise<boolean> {
  const answer = await client.getPath<GroupList>('/apis', { signal });
  if (answer.kind !== 'APIGroupList' || answer.groups === undefined) throw new Error('GET /apis: not an APIGroupList');
  const group = answer.groups.find(({ name }) => name === type.group);
  if (group === undefined) return false;
  return group.versions === undefined || group.versions.some(({ version }) => version === type.version);
}
