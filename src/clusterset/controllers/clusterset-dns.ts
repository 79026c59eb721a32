// Keeps the ClusterSet's DNS options and the places of its members at home, where resolvers and proxies read them.

import { errorText, type Log } from '../../base/log.ts';
import { Queue } from '../../base/queue.ts';
import type { World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import type { SetAccess } from '../rules/access/set-access.ts';
import { type AddressPlan, readAddressPlan, withFormerRanges } from '../rules/address-plan.ts';
import { clusterSetDnsName, type DnsOptions, dnsOptionsManifest } from '../rules/clusterset-dns.ts';
import type { SetLocality } from '../rules/locality.ts';
import type { SetNetworks } from '../rules/networks/networks.ts';

export interface ClusterSetDnsOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly systemNamespace: string;
  readonly wanted: (present: ConfigMap | undefined) => Wanted;
  /** Whether an import still has an address of this range: one that it has stays when the set's range changes. */
  readonly isRangeInUse: (range: string) => boolean;
}

interface Wanted {
  readonly dns: DnsOptions;
  readonly locality: SetLocality;
  readonly networks: SetNetworks;
  readonly access: SetAccess;
  readonly callers: string | undefined;
  readonly addressPlan: AddressPlan;
}

export interface ClusterSetDnsController {
  /** The wanted options may have changed. */
  nudge(): void;
  stop(): Promise<void>;
}

export function runClusterSetDns(options: ClusterSetDnsOptions): ClusterSetDnsController {
  const { world, log, home } = options;

  async function write(): Promise<undefined> {
    const ref = { namespace: options.systemNamespace, name: clusterSetDnsName };
    const present = await getOrUndefined<ConfigMap>(home, configMapType, ref);
    const { dns, addressPlan, ...planes } = options.wanted(present);
    const former = readAddressPlan(present ?? {})?.ranges.clusterSet ?? [];
    const place = { ...planes, addressPlan: withFormerRanges(addressPlan, former.filter(options.isRangeInUse)) };
    const { type, object: wanted } = dnsOptionsManifest(dns, { ...place, namespace: options.systemNamespace });
    await apply({ client: home, type, present, change: replaceWith(wanted) });
    return undefined;
  }

  const queue = new Queue({
    name: 'clusterset dns',
    world,
    work: write,
    onFailure: ({ error }) => log.info("the clusterset's DNS options were not written", { error: errorText(error) }),
  });
  queue.start();
  return { nudge: () => queue.add('options'), stop: () => queue.stop() };
}
