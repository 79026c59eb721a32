// Several threads on the same ports: the kernel spreads clients over their sockets. The catalog's memory is shared,
// so a change is visible in every thread at once and nothing is copied; only new generations and stub zones are sent.
// A thread that dies is replaced and reads the same memory.

import { Worker } from 'node:worker_threads';
import type { Log, LogFields } from '../../base/log.ts';
import { siblingModule } from '../../base/sibling-module.ts';
import type { World } from '../../base/world.ts';
import type { CatalogMemory, CatalogNews, NameTable } from '../../catalog/names/name-table.ts';
import type { ChainConfig } from '../chain/chain.ts';
import type { ZoneChange } from '../chain/service.ts';
import type { ListenOptions, StubZone, TlsMaterial, TrustConfig } from '../config/config.ts';
import { createCounters } from '../metrics/observe.ts';
import { type CloseOptions, checkPortsFree, placesOf, type Serving } from './open-sockets.ts';

export interface WorkerSetup {
  readonly config: ChainConfig;
  readonly listen: ListenOptions;
  readonly memory: CatalogMemory;
  readonly records?: CatalogMemory | undefined;
  readonly stubZones: readonly StubZone[];
  readonly counters: SharedArrayBuffer;
}

export type ToWorker =
  | { readonly kind: 'news'; readonly news: CatalogNews }
  | { readonly kind: 'records'; readonly news: CatalogNews }
  | { readonly kind: 'stubZones'; readonly zones: readonly StubZone[] }
  | { readonly kind: 'trust'; readonly trust: TrustConfig }
  | { readonly kind: 'zones'; readonly change: ZoneChange }
  | { readonly kind: 'tls'; readonly material: TlsMaterial }
  | { readonly kind: 'open' }
  | { readonly kind: 'close'; readonly how: CloseOptions | undefined };

/** The fields of a system error that a thread cannot hand on with the error itself. */
export interface SocketFault {
  readonly code?: string | undefined;
  readonly syscall?: string | undefined;
  readonly address?: string | undefined;
  readonly port?: number | undefined;
}

export type FromWorker =
  | ({ readonly kind: 'listening' } & Ports)
  | { readonly kind: 'failed'; readonly message: string; readonly fault: SocketFault }
  | { readonly kind: 'log'; readonly line: string }
  | { readonly kind: 'query'; readonly fields: LogFields };

type Ports = Pick<Serving, 'addresses' | 'udpPort' | 'tlsPort' | 'httpsPort'>;

export interface WorkersOptions {
  readonly world: World;
  readonly log: Log;
  readonly listen: ListenOptions;
  readonly table: NameTable;
  readonly records?: NameTable | undefined;
  readonly stubZones: readonly StubZone[];
  readonly config: ChainConfig;
  readonly workers: number;
}

const restartMs = 500;

export async function startWorkers(options: WorkersOptions): Promise<Serving> {
  const { log, world, table, records } = options;
  const running = new Set<Worker>();
  const all = new Set<SharedArrayBuffer>();
  const spare: SharedArrayBuffer[] = [];
  let { stubZones } = options;
  let { listen, config } = options;
  let isClosing = false;
  let restarts = 0;

  async function start(): Promise<Ports> {
    // A thread that replaces another goes on counting where that one stopped.
    const counters = spare.pop() ?? createCounters();
    all.add(counters);
    const memories = { memory: table.memory, records: records?.memory };
    const workerData: WorkerSetup = { config, listen, ...memories, stubZones, counters };
    // The name is that of the thread, as `top -H` shows it.
    const worker = new Worker(siblingModule(import.meta.url, 'worker'), { workerData, name: 'dns' });
    running.add(worker);
    worker.on('error', (error) => log.error('dns worker failed', { error }));
    worker.on('exit', () => {
      running.delete(worker);
      spare.push(counters);
      if (isClosing) return;
      world.timers.after(restartMs, () => {
        if (isClosing) return;
        restarts += 1;
        start().catch((error) => log.error('dns worker cannot be replaced', { error }));
      });
    });
    return listening(worker, (message) => {
      if (message.kind === 'query') log.info('query', message.fields);
      else log.warn('dns worker', { line: message.line });
    });
  }

  const tell = (message: ToWorker) => {
    for (const worker of running) worker.postMessage(message);
  };
  const stopNews = table.onNews((news) => tell({ kind: 'news', news }));
  const stopRecords = records?.onNews((news) => tell({ kind: 'records', news }));

  async function close(how?: CloseOptions): Promise<void> {
    isClosing = true;
    const ended = [...running].map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
    tell({ kind: 'close', how });
    await Promise.all(ended);
    stopNews();
    stopRecords?.();
  }

  /** It tells the others which ports it found free. */
  async function startFirst(): Promise<Ports> {
    await checkPortsFree(options);
    const ports = await start();
    const { tls } = listen;
    const others = ports.addresses.slice(listen.hosts.length);
    listen = {
      ...listen,
      port: ports.udpPort,
      others,
      tls: tls && { ...tls, port: ports.tlsPort!, httpsPort: ports.httpsPort },
    };
    return ports;
  }

  try {
    const held: Promise<Ports>[] = [];
    const ports = listen.takesOver ? placesOf(listen) : await startFirst();
    for (let i = listen.takesOver ? 0 : 1; i < options.workers; i++) {
      const opening = start();
      if (!listen.takesOver) await opening;
      else held.push(opening);
    }
    // Reported by takeOver.
    for (const opening of held) opening.catch(() => {});
    return {
      addresses: ports.addresses,
      udpPort: ports.udpPort,
      tcpPort: ports.udpPort,
      tlsPort: ports.tlsPort,
      httpsPort: ports.httpsPort,
      counters: () => [...all],
      workerRestarts: () => restarts,
      setQueryLog: (isOn) => table.setQueryLog(isOn),
      setStubZones: (zones) => {
        stubZones = zones;
        tell({ kind: 'stubZones', zones });
      },
      setTrust: (trust) => {
        // Also for threads that come later.
        config = { ...config, ...trust };
        tell({ kind: 'trust', trust });
      },
      changeZones: (change) => {
        config = { ...config, ...change };
        tell({ kind: 'zones', change });
      },
      setTls: (material) => {
        if (listen.tls) listen = { ...listen, tls: { ...listen.tls, material } };
        tell({ kind: 'tls', material });
      },
      takeOver: async () => {
        // Also for threads that come later.
        listen = { ...listen, takesOver: false };
        tell({ kind: 'open' });
        await Promise.all(held);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function listening(
  worker: Worker,
  onLog: (message: Extract<FromWorker, { kind: 'log' | 'query' }>) => void,
): Promise<Ports> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('dns worker ended before it listened')));
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'listening') resolve(message);
      else if (message.kind === 'failed') reject(Object.assign(new Error(message.message), message.fault));
      else onLog(message);
    });
  });
}
