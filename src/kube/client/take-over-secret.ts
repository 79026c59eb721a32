// Takes over a Secret that an earlier version kept in another namespace: copied once, and the old one stays.

import { isAlreadyExists } from '../objects/api-error.ts';
import { type Secret, secretType } from '../objects/secret.ts';
import { getOrUndefined } from './absent.ts';
import type { Client } from './client.ts';

export interface TakeOver {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

export async function takeOverSecret(client: Client, { name, from, to }: TakeOver): Promise<void> {
  if (from === to) return;
  const present = await getOrUndefined<Secret>(client, secretType, { namespace: to, name });
  if (present !== undefined) return;
  const former = await getOrUndefined<Secret>(client, secretType, { namespace: from, name });
  if (former === undefined) return;
  const { type, data, metadata } = former;
  const kept = { name, namespace: to, ...(metadata.annotations && { annotations: metadata.annotations }) };
  const copy: Secret = { apiVersion: 'v1', kind: 'Secret', metadata: kept, type, data };
  await client.create<Secret>(secretType, copy).catch((error: unknown) => {
    // Another process was faster.
    if (!isAlreadyExists(error)) throw error;
  });
}
