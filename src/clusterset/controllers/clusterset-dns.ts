// Keeps the ClusterSet's DNS options and the places of its members at home, where resolvers and proxies read them.

import { errorText, type Log } from '../../base/log.ts';
import { createQueue } from '../../base/queue.ts';
import type { World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import type { ConfigMap } from '../../kube/objects/config-map.ts';
import { type DnsOptions, dnsOptionsManifest } from '../rules/clusterset-dns.ts';
import type { SetLocality } from '../rules/locality.ts';
import type { SetGround } from '../rules/set-ground.ts';

export interface ClusterSetDnsOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly systemNamespace: string;
  readonly wanted: () => { readonly dns: DnsOptions; readonly locality: SetLocality; readonly ground: SetGround };
}

export interface ClusterSetDnsController {
  /** The wanted options may have changed. */
  nudge(): void;
  stop(): Promise<void>;
}

export function runClusterSetDns(options: ClusterSetDnsOptions): ClusterSetDnsController {
  const { world, log, home } = options;

  async function write(): Promise<undefined> {
    const { dns, locality, ground } = options.wanted();
    const place = { locality, ground, namespace: options.systemNamespace };
    const { type, object: wanted } = dnsOptionsManifest(dns, place);
    const present = await getOrUndefined<ConfigMap>(home, type, wanted.metadata);
    await apply({ client: home, type, present, change: replaceWith(wanted) });
    return undefined;
  }

  const queue = createQueue({
    name: 'clusterset dns',
    world,
    work: write,
    onFailure: ({ error }) => log.info("the clusterset's DNS options were not written", { error: errorText(error) }),
  });
  queue.start();
  return { nudge: () => queue.add('options'), stop: () => queue.stop() };
}
