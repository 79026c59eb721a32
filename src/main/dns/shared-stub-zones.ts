// Stub zones that federations posted, kept in a ConfigMap of the home: an authority posts to one address, and all resolvers behind
// it follow what one of them took. They survive Pods, too.

import { errorText, type Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { StubStore } from '../../dns/config/config.ts';
import { apply } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { managedByLabel, managerName, stubZonesName, systemNamespace } from '../../kube/objects/ours.ts';

export interface SharedStubZonesOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
}

const dataKey = 'stub-zones.json';
const requestMs = 5_000;

export function shareStubZones(options: SharedStubZonesOptions): StubStore & { stop(): void } {
  const { client, log } = options;
  const ref = { namespace: systemNamespace, name: stubZonesName };
  const listeners = new Set<(text: string) => void>();
  /** As it was last seen or written. Another resolver that wrote since makes a write fail, and the authority posts again. */
  let present: ConfigMap | undefined;

  const informer = createInformer<ConfigMap>({
    ...{ ...options, type: configMapType, namespace: ref.namespace },
    fieldSelector: `metadata.name=${ref.name}`,
  });
  informer.on((_key, next) => {
    present = next;
    for (const listener of listeners) listener(next?.data?.[dataKey] ?? '');
  });
  informer.start();

  return {
    read: async () => {
      try {
        present = await client.get<ConfigMap>(configMapType, ref, { timeoutMs: requestMs });
      } catch (error) {
        // Not there yet, or a home that is away; the watch brings it.
        log.debug('stub zones were not read yet', { error: errorText(error) });
      }
      const text = present?.data?.[dataKey];
      return text === undefined ? undefined : Buffer.from(text);
    },
    write: async (bytes) => {
      const change = (there: ConfigMap | undefined): ConfigMap => ({
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...ref, labels: { [managedByLabel]: managerName } } },
        ...there,
        data: { ...there?.data, [dataKey]: Buffer.from(bytes).toString('utf8') },
      });
      const request = { client, type: configMapType, present, change, options: { timeoutMs: requestMs } };
      ({ object: present } = await apply<ConfigMap>(request));
    },
    onChange: (listener) => void listeners.add(listener),
    stop: () => informer.stop(),
  };
}
