// Ties the names of peers' services to a home: one watch on PeerServices. A home that does not have the kind, or
// does not let us read it, keeps nobody waiting; the kind is noticed when it comes. Until what peers share has been
// read, names outside our zones are held back for a few seconds: a resolver would remember another server's NXDOMAIN
// long after we know better.

import { errorText, type Log } from '../base/log.ts';
import { sleep, type World } from '../base/world.ts';
import type { Client } from '../kube/client/client.ts';
import { isServed } from '../kube/client/discovery.ts';
import { createReflector, type Reflector } from '../kube/controller/reflector.ts';
import { isForbidden, isNotFound } from '../kube/objects/api-error.ts';
import { type PeerService, peerServiceType } from '../peering/kinds/peer-service.ts';
import { ForwardingSink } from './attach.ts';
import type { PeerTable } from './peer-table.ts';

export interface AttachPeersOptions {
  readonly peers: PeerTable;
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** Where PeerServices lie. Others may write elsewhere, and must not give names to a whole cluster. */
  readonly namespace: string;
  /** How long other people's names are held back at most. */
  readonly holdMs?: number;
}

export interface PeersAttachment {
  /** Whether there is something to read that was not read yet. */
  isWaiting(): boolean;
  /** Resolves when what peers share has been read, or there is nothing to read. */
  whenSynced(): Promise<void>;
  stop(): void;
}

const defaultHoldMs = 5000;
const lookAgainMs = 1000;

export function attachPeers(options: AttachPeersOptions): PeersAttachment {
  const { peers, client, world, namespace } = options;
  const log = options.log.with({ watch: peerServiceType.plural });
  const stopping = new AbortController();
  let isDone = false;
  let resolveDone = () => {};
  const done = new Promise<void>((resolve) => (resolveDone = resolve));
  const finish = () => {
    isDone = true;
    resolveDone();
  };
  const sink = new ForwardingSink(
    {
      upsert: (service: PeerService) => peers.upsert(service),
      remove: (key) => peers.remove(key),
      keys: () => peers.keys(),
    },
    () => {
      peers.setSynced();
      finish();
    },
  );
  const reflector: Reflector = createReflector({
    ...{ client, world, log, namespace, sink },
    type: peerServiceType,
    onState: () => peers.setStale(reflector.status().staleSinceMs !== undefined),
  });
  const hold = world.timers.after(options.holdMs ?? defaultHoldMs, () => peers.passOthers());
  reflector.start();
  void look({ client, world, log, namespace, signal: stopping.signal }).then((found) => {
    if (found !== 'nothing to read') return;
    peers.passOthers();
    finish();
  });
  return {
    isWaiting: () => !isDone,
    whenSynced: () => done,
    stop: () => {
      hold.cancel();
      stopping.abort(new Error('stopped'));
      reflector.stop();
    },
  };
}

interface LookOptions extends Pick<AttachPeersOptions, 'client' | 'world' | 'log' | 'namespace'> {
  readonly signal: AbortSignal;
}

/** Until the home has said whether there is something to read. */
async function look(options: LookOptions): Promise<'something to read' | 'nothing to read' | 'stopped'> {
  const { client, world, log, namespace, signal } = options;
  while (!signal.aborted) {
    try {
      await client.list(peerServiceType, { namespace, limit: 1, signal });
      return 'something to read';
    } catch (error) {
      if (isForbidden(error)) {
        log.warn('what peers share may not be read here: their names are not answered', { error: errorText(error) });
        return 'nothing to read';
      }
      const isAbsent =
        isNotFound(error) && (await isServed(client, peerServiceType, signal).catch(() => true)) === false;
      if (isAbsent) return 'nothing to read';
    }
    await sleep(world.timers, lookAgainMs, signal).catch(() => {});
  }
  return 'stopped';
}
