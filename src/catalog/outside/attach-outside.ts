// Ties names outside our zones to a home: one watch on the kind that has them, PeerServices or MeshExternalServices.
// A home that does not have the kind, or does not let us read it, delays nothing; the kind is noticed when it comes.
// Until it has been read, names outside our zones are held back for a few seconds: a resolver would remember another
// server's NXDOMAIN long after we know better.

import { errorText, type Log } from '../../base/log.ts';
import { sleep, type World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { isServed } from '../../kube/client/discovery.ts';
import { ForwardingSink } from '../../kube/controller/forwarding-sink.ts';
import { Reflector } from '../../kube/controller/reflector.ts';
import { isForbidden, isNotFound } from '../../kube/objects/api-error.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

/** Where the names of one kind are kept. */
interface OutsideNames<T> {
  upsert(object: T): void;
  remove(key: string): void;
  keys(): IterableIterator<string>;
  setSynced(): void;
  /** It is not waited for any longer. */
  passOthers(): void;
  nothingToRead(): void;
  setStale(isStale: boolean): void;
}

export interface AttachOutsideOptions<T extends KubernetesObject> {
  readonly names: OutsideNames<T>;
  readonly type: ResourceType;
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** Where its objects lie. Others may write elsewhere, and must not give names to a whole cluster. */
  readonly namespace: string;
  /** How long other people's names are held back at most. */
  readonly holdMs?: number;
}

export interface OutsideAttachment {
  /** Whether there is something to read that was not read yet. */
  isWaiting(): boolean;
  /** Resolves when all has been read, or there is nothing to read. */
  whenSynced(): Promise<void>;
  stop(): void;
}

const defaultHoldMs = 5000;
const lookAgainMs = 1000;

export function attachOutside<T extends KubernetesObject>(options: AttachOutsideOptions<T>): OutsideAttachment {
  const { names, type, client, world, namespace } = options;
  const log = options.log.with({ watch: type.plural });
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
      upsert: (object: T) => names.upsert(object),
      remove: (key) => names.remove(key),
      keys: () => names.keys(),
    },
    () => {
      names.setSynced();
      finish();
    },
  );
  const reflector: Reflector = new Reflector({
    ...{ client, world, log, namespace, sink },
    type,
    onState: () => names.setStale(reflector.status().staleSinceMs !== undefined),
  });
  const hold = world.timers.after(options.holdMs ?? defaultHoldMs, () => names.passOthers());
  reflector.start();
  void look({ type, client, world, log, namespace, signal: stopping.signal }).then((found) => {
    if (found !== 'nothing to read') return;
    names.nothingToRead();
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

interface LookOptions extends Pick<AttachOutsideOptions<never>, 'type' | 'client' | 'world' | 'log' | 'namespace'> {
  readonly signal: AbortSignal;
}

/** Until the home has said whether there is something to read. */
async function look(options: LookOptions): Promise<'something to read' | 'nothing to read' | 'stopped'> {
  const { type, client, world, log, namespace, signal } = options;
  while (!signal.aborted) {
    try {
      await client.list(type, { namespace, limit: 1, signal });
      return 'something to read';
    } catch (error) {
      if (isForbidden(error)) {
        log.warn('names outside our zones may not be read here: they are not answered', { error: errorText(error) });
        return 'nothing to read';
      }
      const isAbsent = isNotFound(error) && (await isServed(client, type, signal).catch(() => true)) === false;
      if (isAbsent) return 'nothing to read';
    }
    await sleep(world.timers, lookAgainMs, signal).catch(() => {});
  }
  return 'stopped';
}
