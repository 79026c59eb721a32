// A condition on each service of a peer that loses a name to an external service: which name, and to whom. Gone when the
// conflict is. Names among peers' services are settled by peering itself.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { NameOwner } from '../../external/rules/hostnames.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { runController } from '../../kube/controller/loop.ts';
import { conditionOf, formatTime, withConditions } from '../../kube/objects/conditions.ts';
import type { Condition } from '../../kube/objects/object.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import {
  firstSeenAnnotation,
  hostnamesOf,
  type PeerService,
  peerServiceType,
} from '../../peering/kinds/peer-service.ts';

/** A service of a peer, with as few fields as possible: there may be tens of thousands. */
export interface PeerNames extends NameOwner {
  readonly hasLost: boolean;
}

export interface PeerNameLossesOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly peers: Informer<PeerNames>;
  /** The external service that has a name; undefined if none has it. */
  readonly holderOf: (hostname: string) => string | undefined;
}

export interface PeerNameLosses {
  /** These may have another holder now. */
  namesChanged(hostnames: Iterable<string>): void;
  stop(): Promise<void>;
}

const byHostname = 'hostname';
const conditionType = 'HostnamesAvailable';

export function watchPeerNames(options: Pick<PeerNameLossesOptions, 'world' | 'log' | 'home'>): Informer<PeerNames> {
  const { world, log, home: client } = options;
  return createInformer<PeerService, PeerNames>({
    ...{ client, world, log, namespace: systemNamespace, type: peerServiceType, keep: namesOf },
    indexes: { [byHostname]: ({ hostnames }) => hostnames },
  });
}

export function peersAt(peers: Informer<PeerNames>, hostname: string): PeerNames[] {
  return peers.byIndex(byHostname, hostname);
}

export function runPeerNameLosses(options: PeerNameLossesOptions): PeerNameLosses {
  const { world, log, home, peers, holderOf } = options;
  const lossesOf = (hostnames: readonly string[]) =>
    hostnames.flatMap((name) => {
      const holder = holderOf(name);
      return holder === undefined ? [] : [`${name} is held by ${holder}, which is older`];
    });

  async function reconcile(key: string): Promise<undefined> {
    const kept = peers.get(key);
    if (kept === undefined || (!kept.hasLost && lossesOf(kept.hostnames).length === 0)) return;
    const ref = { namespace: systemNamespace, name: key.slice(systemNamespace.length + 1) };
    const present = await getOrUndefined<PeerService>(home, peerServiceType, ref);
    if (present === undefined) return;
    const losses = lossesOf(hostnamesIn(present));
    const before = present.status?.conditions ?? [];
    const after = losses.length === 0 ? before.filter(({ type }) => type !== conditionType) : lost(before, losses);
    if (after.length === before.length && after.every((one, at) => one === before[at])) return;
    await home.updateStatus(peerServiceType, { ...present, status: { ...present.status, conditions: [...after] } });
  }

  function lost(before: readonly Condition[], losses: readonly string[]): readonly Condition[] {
    const message = losses.join('; ');
    const condition = { type: conditionType, status: 'False', reason: 'HeldByExternalService', message } as const;
    return withConditions(before, [condition], { now: formatTime(world.clock.wallMs()) });
  }

  const controller = runController({
    ...{ name: 'peer-name-losses', world, log, reconcile, concurrency: 4 },
    sources: [{ informer: peers }],
  });
  return {
    namesChanged: (hostnames) => {
      for (const hostname of hostnames) for (const { key } of peersAt(peers, hostname)) controller.queue.add(key);
    },
    stop: () => controller.stop(),
  };
}

function namesOf(service: PeerService): PeerNames {
  const { namespace = '', name, annotations, creationTimestamp = '' } = service.metadata;
  const firstSeenMs = Number(annotations?.[firstSeenAnnotation] ?? 0) || Date.parse(creationTimestamp) || 0;
  return {
    ...{ kind: service.kind, key: `${namespace}/${name}`, createdMs: firstSeenMs, hostnames: hostnamesIn(service) },
    hasLost: conditionOf(service.status?.conditions, conditionType) !== undefined,
  };
}

function hostnamesIn(service: PeerService): string[] {
  return hostnamesOf(service).map((name) => name.toLowerCase());
}
