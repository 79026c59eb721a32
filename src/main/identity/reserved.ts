// Names and ranges of this cluster, which no peer may claim: zones and ranges from flags and from the clusterset, which the agent
// copies into the home, and the hosts of our own API and endpoint, with the address that the API has inside the cluster. Followed
// while the process runs.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { clusterSetDefaults } from '../../clusterset/kinds/cluster-set.ts';
import { type AddressPlan, readAddressPlan } from '../../clusterset/rules/address-plan.ts';
import { clusterSetDnsName, readDnsOptions } from '../../clusterset/rules/clusterset-dns.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import type { Reserved } from '../../peering/rules/link-config.ts';

export interface ReservedOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly zones: readonly string[];
  readonly ranges: readonly string[];
  readonly hosts: readonly string[];
  readonly onChanged: () => void;
}

export interface FollowedReserved {
  current(): Reserved;
  /** The clusterset's part; undefined for a cluster that is in none. */
  set(): AddressPlan | undefined;
  /** Resolves when the home was read once, or after a while without it. */
  whenRead(): Promise<void>;
  stop(): void;
}

/** Names of the Kubernetes API that every Pod knows. */
const apiNames = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
const firstReadMsMax = 5000;

export function followReserved(options: ReservedOptions): FollowedReserved {
  const { world, log, home: client, onChanged } = options;
  const informer = createInformer<ConfigMap>({
    ...{ client, world, log, type: configMapType, namespace: systemNamespace },
    fieldSelector: `metadata.name=${clusterSetDnsName}`,
  });
  const apiServices = createInformer<Service>({
    ...{ client, world, log, type: serviceType, namespace: 'default' },
    fieldSelector: 'metadata.name=kubernetes',
  });
  let set: AddressPlan | undefined;
  let written: ConfigMap | undefined;
  let apiAddresses: readonly string[] = [];
  let current = reservedOf(options, undefined);
  const renew = () => {
    const reserved = reservedOf({ ...options, hosts: [...options.hosts, ...apiAddresses] }, written);
    if (JSON.stringify(reserved) === JSON.stringify(current)) return;
    current = reserved;
    onChanged();
  };
  informer.on((_key, next) => {
    written = next;
    set = next && readAddressPlan(next);
    renew();
  });
  apiServices.on((_key, next) => {
    apiAddresses = (next?.spec?.clusterIPs ?? []).filter((ip) => ip !== 'None');
    renew();
  });
  informer.start();
  apiServices.start();
  return {
    current: () => current,
    set: () => set,
    whenRead: () => {
      const patience = new AbortController();
      const timer = world.timers.after(firstReadMsMax, () => patience.abort());
      return Promise.all([informer, apiServices].map((each) => each.whenSynced(patience.signal)))
        .then(() => {})
        .catch(() => log.info("the clusterset's zones and ranges cannot be read yet"))
        .finally(() => timer.cancel());
    },
    stop: () => {
      informer.stop();
      apiServices.stop();
    },
  };
}

function reservedOf({ zones, ranges, hosts }: ReservedOptions, written: ConfigMap | undefined): Reserved {
  const set = written && readAddressPlan(written);
  const setRanges = set?.ranges ?? clusterSetDefaults.addressRanges;
  const setZones = written === undefined ? [] : [readDnsOptions(written).zone, ...(set?.federationZones ?? [])];
  return {
    zones: [...new Set([...zones, ...setZones])],
    ranges: [...new Set([...ranges, ...setRanges.clusterSet, ...setRanges.peers])],
    hosts: [...new Set([...apiNames, ...hosts])],
  };
}
