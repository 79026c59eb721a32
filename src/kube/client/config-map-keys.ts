// Writes some keys of a ConfigMap that has other writers too: theirs stay.

import { type ConfigMap, configMapType } from '../objects/config-map.ts';
import type { KubernetesObject } from '../objects/object.ts';
import { getOrUndefined } from './absent.ts';
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
