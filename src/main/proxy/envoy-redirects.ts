// The connections that a node sends to its Envoy: those that rules of external services may be about, and those to the
// addresses of peers' services. Followed while the proxy runs.

import type { Log } from '../../base/log.ts';
import { parseIp } from '../../base/net/ip.ts';
import { sleep, type World } from '../../base/world.ts';
import {
  type ClusterProperty,
  clusterIdProperty,
  clusterPropertyType,
  clusterSetProperty,
} from '../../clusterset/kinds/cluster-property.ts';
import { type MeshExternalService, meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { defaultOutboundPorts, redirectsOf } from '../../external/rules/redirects.ts';
import { tablesOf } from '../../external/rules/tables.ts';
import { redirectedRules } from '../../external/rules/target.ts';
import { defaultClusterset } from '../../external/rules/visibility.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type PeerService, peerServiceType, reachOf } from '../../peering/kinds/peer-service.ts';
import type { Redirect } from '../../proxy/nft/redirects.ts';
import { virtualPort } from '../../xds/virtual-listener.ts';

export interface EnvoyRedirectsOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  /** Whether connections to peers' services alone are redirected: rules of external services need an Envoy with a user of its own. */
  readonly arePeersOnly?: boolean;
  /** Id of the cluster; the one that it joined with if absent. */
  readonly cluster?: string;
  readonly onChange: (redirects: readonly Redirect[]) => void;
}

/** Changes that come together make one transaction. */
const gatherMs = 50;

export function followEnvoyRedirects(options: EnvoyRedirectsOptions): { stop(): void } {
  const { world, log, home: client, onChange } = options;
  const at = { client, world, log, namespace: systemNamespace };
  const services = createInformer<MeshExternalService>({ ...at, type: meshExternalServiceType });
  const peers = createInformer<PeerService, readonly Redirect[]>({
    ...at,
    type: peerServiceType,
    keep: redirectsOfPeer,
  });
  const properties = createInformer<ClusterProperty>({ client, world, log, type: clusterPropertyType });
  const stopping = new AbortController();
  let isPlanned = false;

  function plan(): void {
    const propertyOf = (property: string) => properties.get(property)?.spec?.value;
    const place = {
      clusterset: propertyOf(clusterSetProperty) ?? defaultClusterset,
      cluster: options.cluster ?? propertyOf(clusterIdProperty) ?? '',
    };
    const external = options.arePeersOnly ? [] : [...services.values()];
    const rules = external.flatMap((object) => redirectedRules(object, place));
    onChange([...redirectsOf(tablesOf(rules), defaultOutboundPorts), ...[...peers.values()].flat()]);
  }

  async function soon(): Promise<void> {
    // Before all was read, redirects of an earlier run would be taken away for a moment.
    if (isPlanned || !services.hasSynced || !properties.hasSynced) return;
    isPlanned = true;
    await sleep(world.timers, gatherMs, stopping.signal).catch(() => {});
    isPlanned = false;
    if (!stopping.signal.aborted) plan();
  }

  for (const informer of [services, peers, properties]) informer.on(() => void soon());
  for (const informer of [services, peers, properties]) informer.start();
  void Promise.all([services.whenSynced(stopping.signal), properties.whenSynced(stopping.signal)]).then(soon, () => {});
  return {
    stop: () => {
      stopping.abort(new Error('stopped'));
      for (const informer of [services, peers, properties]) informer.stop();
    },
  };
}

/** To the listener that hands connections on by their original destination. */
function redirectsOfPeer(service: PeerService): readonly Redirect[] {
  const { ips, ingress } = reachOf(service);
  const ports = new Set(ingress.map(({ port }) => port));
  return ips.flatMap((text) => {
    const ip = parseIp(text);
    if (ip === undefined) return [];
    const range = { family: ip.family, first: ip.value, size: 1n };
    return Array.from(ports, (port): Redirect => ({ range, protocol: 'tcp', port, toPort: virtualPort }));
  });
}
