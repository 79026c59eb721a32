// Writes and removes some keys of a ConfigMap that has other writers too: theirs stay.

import { type ConfigMap, configMapType } from '../objects/config-map.ts';
import type { KubernetesObject } from '../objects/object.ts';
import { deleteIfPresent, getOrUndefined } from './absent.ts';
import { apply } from './apply.ts';
import type { Client } from './client.ts';

export async function writeKeys(
  client: Client,
  metadata: KubernetesObject['metadata'],
  data: Readonly<Record<string, string>>,
): Promise<void> {
  const present = await getOrUndefined<ConfigMap>(client, configMapType, metadata);
  const change = (there: ConfigMap | undefined): ConfigMap =>
    there === undefined
      ? { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { ...data } }
      : { ...there, data: { ...there.data, ...data } };
  await apply<ConfigMap>({ client, type: configMapType, present, change, onConflict: 'retry' });
}

/** A ConfigMap without any other key goes too. */
export async function removeKey(client: Client, metadata: KubernetesObject['metadata'], key: string): Promise<void> {
  const present = await getOrUndefined<ConfigMap>(client, configMapType, metadata);
  if (present?.data?.[key] === undefined) return;
  const isLast = Object.keys(present.data).length === 1 && Object.keys(present.binaryData ?? {}).length === 0;
  if (isLast) await deleteIfPresent(client, configMapType, present.metadata);
  else await client.patch(configMapType, present.metadata, { kind: 'merge', body: { data: { [key]: null } } });
}
