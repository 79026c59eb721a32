// The clusterset's DNS options as a resolver follows them while it runs: the zone's name and TTL, names of clusters, places.
// Flags take precedence.

import { errorText, type Log } from '../base/log.ts';
import type { World } from '../base/world.ts';
import { allocatedRanges } from '../clusterset/rules/address-plan.ts';
import { clusterSetDnsName, type DnsOptions, readDnsOptions } from '../clusterset/rules/clusterset-dns.ts';
import { readLocality } from '../clusterset/rules/locality.ts';
import { readNetworks } from '../clusterset/rules/networks/networks.ts';
import { getOrUndefined } from '../kube/client/absent.ts';
import type { Client } from '../kube/client/client.ts';
import { createInformer } from '../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../kube/objects/config-map.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import type { Catalog } from './catalog.ts';
import type { Zone } from './names/zones.ts';

export interface FollowDnsOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly catalog: Catalog;
  /** Called with the clusterset's zone whenever its name or its TTL changes; names lie there already. */
  readonly onZone: (zone: Zone) => void;
  /** Given at start. */
  readonly fixed: { readonly zone?: string; readonly ttlSeconds?: number; readonly hasClusterNames?: boolean };
}

/** Returns what ends it. */
export function followDnsOptions({ world, log, home, catalog, onZone, fixed }: FollowDnsOptions): () => void {
  const fieldSelector = `metadata.name=${clusterSetDnsName}`;
  const where = { type: configMapType, namespace: systemNamespace, fieldSelector };
  const informer = createInformer<ConfigMap>({ client: home, world, log, ...where });
  let { ttlSeconds } = catalog.clustersetZone;

  function follow({ zone, clusterNames, ...options }: DnsOptions): void {
    if (fixed.hasClusterNames === undefined) catalog.setClusterNames(clusterNames === 'Served');
    const before = catalog.clustersetZone.name;
    if (fixed.zone === undefined) catalog.setClustersetDomain(zone);
    const answered = catalog.clustersetZone.name;
    if (zone !== answered) log.warn('the clusterset has another zone than is answered here', { zone, answered });
    if (before !== answered) log.info("the clusterset's zone has another name", { before, now: answered });
    const isOtherTtl = fixed.ttlSeconds === undefined && options.ttlSeconds !== ttlSeconds;
    if (isOtherTtl) ({ ttlSeconds } = options);
    if (isOtherTtl || before !== answered) onZone({ ...catalog.clustersetZone, ttlSeconds });
  }

  // A cluster that left, or never joined, has none: what holds then is what holds by default.
  informer.on((_key, next) => {
    follow(readDnsOptions(next ?? {}));
    catalog.setLocality(readLocality(next ?? {}));
    catalog.setNetworks(readNetworks(next ?? {}));
    catalog.setAllocatedRanges(allocatedRanges(next ?? {}));
  });
  informer.start();
  return () => informer.stop();
}

const firstLookMs = 3000;
const shortLookMs = 500;

/** The zone the clusterset wants; undefined if the home does not say, and what it was last if the home is away. */
export async function zoneAtStart(home: Client, log: Log, last: string | undefined): Promise<string | undefined> {
  const ref = { namespace: systemNamespace, name: clusterSetDnsName };
  // A server that can answer from a copy of names waits only briefly.
  const timeoutMs = last === undefined ? firstLookMs : shortLookMs;
  try {
    const found = await getOrUndefined<ConfigMap>(home, configMapType, ref, { timeoutMs });
    return found && readDnsOptions(found).zone;
  } catch (error) {
    log.info("the clusterset's DNS options cannot be read yet", { error: errorText(error) });
    return last;
  }
}
