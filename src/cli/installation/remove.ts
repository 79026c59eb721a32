// Removes objects of an installation. Objects with another owner stay.

import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { isOurs } from '../../kube/objects/ours.ts';
import type { CliDeps } from '../with-home.ts';
import { describe } from './describe.ts';
import type { WrittenObject } from './record.ts';

export async function removeOurs(deps: CliDeps, client: Client, objects: readonly WrittenObject[]): Promise<void> {
  for (const { type, ref } of objects) {
    const present = await getOrUndefined(client, type, ref);
    if (present === undefined || !isOurs(present)) continue;
    if (await deleteIfPresent(client, type, ref)) deps.print(`removed ${describe(type, ref)}`);
  }
}
