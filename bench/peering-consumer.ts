// Consumers for the peering benchmark: one that stores in a real home, and a light one that keeps everything in memory.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dial } from '../src/base/grpc/transport-client.ts';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { createClient } from '../src/kube/client/client.ts';
import { startHome } from '../src/main/home/part.ts';
import { ConsumerLink } from '../src/peering/consumer/consumer-link.ts';
import { PeerServiceStore } from '../src/peering/consumer/peer-service-store.ts';
import { peerDefaults } from '../src/peering/kinds/peer.ts';

export interface BenchAccess {
  readonly address: string;
  readonly certificate: string;
  readonly key: string;
  readonly root: string;
}

export interface StoringConsumer {
  /** Milliseconds until the whole catalog was stored, acknowledged and reconciled. */
  sync(access: BenchAccess, services: number): Promise<number>;
  /** Opens a stream and leaves it open until `stop`. */
  open(access: BenchAccess): Promise<void>;
  close(): Promise<void>;
  stop(): Promise<void>;
}

const bounds = { allowedDomains: ['owner.example'], ownZones: ['cluster.local'] };

export async function storingConsumer(): Promise<StoringConsumer> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-peering-'));
  const world = createRealWorld();
  const home = await startHome({ world, log: silentLog, directory, listen: { host: '127.0.0.1', port: 0 } });
  const client = createClient(home.transport, { world, userAgent: 'bench' });
  const namespace = 'default';
  const newStore = () => new PeerServiceStore({ client, world, log: silentLog, namespace, peer: 'owner' });
  let store = newStore();
  /** Empty, and following the home as it does in real life. */
  const startOver = async () => {
    await store.stop();
    await store.removeAll();
    store = newStore();
    await store.load(() => true);
  };
  let link: ConsumerLink | undefined;
  const linkTo = (access: BenchAccess, onChanged: () => void) =>
    new ConsumerLink({
      ...{ world, log: silentLog, peer: 'owner', store, dial, onChanged },
      config: {
        address: access.address,
        versions: ['v1alpha1'],
        roots: [access.root],
        isExpected: (identity) => identity === 'spiffe://owner.example/mesh',
        bounds,
        accepts: () => true,
        quietMs: 3000,
        graceMs: 60_000,
        retentionMs: 0,
        servicesMax: peerDefaults.servicesMax,
        bytesMax: peerDefaults.storedMegabytesMax * 1024 * 1024,
      },
      credentials: () => access,
    });
  const until = (access: BenchAccess, services: number) =>
    new Promise<number>((resolve, reject) => {
      const startMs = performance.now();
      const opened = linkTo(access, () => {
        const { fullSyncMs, services: held, state } = opened.report();
        if (state.kind === 'stopped') reject(new Error(state.reason));
        if (fullSyncMs === undefined) return;
        if (held !== services) reject(new Error(`${held} services are stored, ${services} were offered`));
        resolve(performance.now() - startMs);
      });
      link = opened;
      opened.start();
    });
  return {
    sync: async (access, services) => {
      await startOver();
      const tookMs = await until(access, services);
      link?.stop();
      await store.whenIdle();
      return tookMs;
    },
    open: async (access) => {
      await startOver();
      await new Promise<void>((resolve) => {
        const opened = linkTo(access, () => opened.report().fullSyncMs !== undefined && resolve());
        link = opened;
        opened.start();
      });
    },
    close: async () => {
      link?.stop();
      await store.whenIdle();
    },
    stop: async () => {
      link?.stop();
      await store.stop();
      await home.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
