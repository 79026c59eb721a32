// The parts of an agent that keep external services: their controller, the context that the cluster leaves to them, and
// other owners of names. They need no broker and no lease: what two agents write is the same.

import { isSameJson } from '../../base/json.ts';
import type { Log } from '../../base/log.ts';
import { parseRange } from '../../base/net/ip.ts';
import type { World } from '../../base/world.ts';
import { clusterSetDefaults } from '../../clusterset/kinds/cluster-set.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { readAddressPlan } from '../../clusterset/rules/address-plan.ts';
import { clusterSetDnsName, readDnsOptions } from '../../clusterset/rules/clusterset-dns.ts';
import { type ExternalContext, ExternalServicesController } from '../../external/controllers/services.ts';
import { builtinPlugins } from '../../external/plugins/builtin.ts';
import type { Plugins } from '../../external/plugins/plugin.ts';
import { defaultClusterset } from '../../external/rules/visibility.ts';
import type { Client } from '../../kube/client/client.ts';
import { watchDataPlane } from '../../kube/controller/data-plane.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { peersDomain } from '../../peering/kinds/peer-service.ts';
import { peersAt, runPeerNameLosses, watchPeerNames } from './peer-name-losses.ts';

export interface ExternalOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  /** Undefined for a cluster that is in no clusterset. */
  readonly membership: () => Pick<MembershipRecord, 'clusterset' | 'clusterId'> | undefined;
  readonly whenMembershipKnown: (signal?: AbortSignal) => Promise<void>;
  readonly plugins?: Plugins;
}

export interface ExternalPart {
  placeChanged(): void;
  stop(): Promise<void>;
}

const clusterDomain = 'cluster.local';

export function startExternal(options: ExternalOptions): ExternalPart {
  const { world, log, home } = options;
  const at = { client: home, world, log, namespace: systemNamespace };
  const written = createInformer<ConfigMap>({
    ...at,
    type: configMapType,
    fieldSelector: `metadata.name=${clusterSetDnsName}`,
  });
  const peers = watchPeerNames({ world, log, home });
  const controller: ExternalServicesController = new ExternalServicesController({
    ...{ world, log, home, namespace: systemNamespace, plugins: options.plugins ?? builtinPlugins },
    place: () => {
      const { clusterset = defaultClusterset, clusterId: cluster = '' } = options.membership() ?? {};
      return { clusterset, cluster };
    },
    othersAt: (hostname) => peersAt(peers, hostname),
    onNames: (hostnames) => losses.namesChanged(hostnames),
    whenKnown: async (signal) => {
      await Promise.all([options.whenMembershipKnown(signal), written.whenSynced(signal), peers.whenSynced(signal)]);
    },
    plane: () => planes.of('sidecar'),
    context: () => contextIn(written.get(`${systemNamespace}/${clusterSetDnsName}`)),
  });
  const planes = watchDataPlane({ ...at, roles: ['sidecar'], onChange: () => controller.planeChanged() });
  const losses = runPeerNameLosses({
    ...{ world, log, home, peers, holderOf: (hostname: string) => controller.holderOf(hostname) },
  });
  written.on(() => controller.nudge());
  peers.on((_key, next, previous) => {
    if (isSameJson(next?.hostnames, previous?.hostnames) && next?.createdMs === previous?.createdMs) return;
    controller.othersChanged([...(next?.hostnames ?? []), ...(previous?.hostnames ?? [])]);
  });
  written.start();
  peers.start();
  return {
    placeChanged: () => controller.nudge(),
    stop: async () => {
      planes.stop();
      written.stop();
      peers.stop();
      await losses.stop();
      await controller.stop();
    },
  };
}

function contextIn(written: ConfigMap | undefined): ExternalContext {
  const set = written && readAddressPlan(written);
  const { external, clusterSet, peers } = set?.ranges ?? clusterSetDefaults.addressRanges;
  const parsed = (texts: readonly string[]) => texts.flatMap((text) => parseRange(text) ?? []);
  const { zone } = readDnsOptions(written ?? {});
  return {
    // A home whose agent is older said nothing of them.
    ranges: parsed(external.length === 0 ? clusterSetDefaults.addressRanges.external : external),
    zones: [clusterDomain, peersDomain, zone, ...(set?.federationZones ?? [])],
    pools: [
      ...parsed(clusterSet).map((range) => ({ whose: 'the clusterset', range })),
      ...parsed(peers).map((range) => ({ whose: 'peers', range })),
    ],
  };
}
