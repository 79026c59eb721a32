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
  const workers = new Workers(options);
  try {
    return await workers.start();
  } catch (error) {
    await workers.close();
    throw error;
  }
}

class Workers {
  readonly #options: WorkersOptions;
  readonly #running = new Set<Worker>();
  /** Counters of all threads, also of those that have ended. */
  readonly #counters = new Set<SharedArrayBuffer>();
  readonly #spare: SharedArrayBuffer[] = [];
  /** Threads that listen when they are told to. */
  readonly #held: Promise<Ports>[] = [];
  readonly #stops: (() => void)[];
  #stubZones: readonly StubZone[];
  #listen: ListenOptions;
  #config: ChainConfig;
  #isClosing = false;
  #restarts = 0;

  constructor(options: WorkersOptions) {
    this.#options = options;
    const { table, records } = options;
    this.#stubZones = options.stubZones;
    this.#listen = options.listen;
    this.#config = options.config;
    const stopNews = table.onNews((news) => this.#tell({ kind: 'news', news }));
    const stopRecords = records?.onNews((news) => this.#tell({ kind: 'records', news }));
    this.#stops = [stopNews, ...(stopRecords ? [stopRecords] : [])];
  }

  async start(): Promise<Serving> {
    const { workers, table } = this.#options;
    const { takesOver } = this.#listen;
    const ports = takesOver ? placesOf(this.#listen) : await this.#startFirst();
    for (let i = takesOver ? 0 : 1; i < workers; i++) {
      const opening = this.#startOne();
      if (takesOver) this.#held.push(opening);
      else await opening;
    }
    // Reported by takeOver.
    for (const opening of this.#held) opening.catch(() => {});
    return {
      addresses: ports.addresses,
      udpPort: ports.udpPort,
      tcpPort: ports.udpPort,
      tlsPort: ports.tlsPort,
      httpsPort: ports.httpsPort,
      counters: () => [...this.#counters],
      workerRestarts: () => this.#restarts,
      setQueryLog: (isOn) => table.setQueryLog(isOn),
      setStubZones: (zones) => {
        this.#stubZones = zones;
        this.#tell({ kind: 'stubZones', zones });
      },
      setTrust: (trust) => {
        // Also for threads that come later.
        this.#config = { ...this.#config, ...trust };
        this.#tell({ kind: 'trust', trust });
      },
      changeZones: (change) => {
        this.#config = { ...this.#config, ...change };
        this.#tell({ kind: 'zones', change });
      },
      setTls: (material) => this.#setTls(material),
      takeOver: () => this.#takeOver(),
      close: (how) => this.close(how),
    };
  }

  async close(how?: CloseOptions): Promise<void> {
    this.#isClosing = true;
    const ended = [...this.#running].map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
    this.#tell({ kind: 'close', how });
    await Promise.all(ended);
    for (const stop of this.#stops) stop();
  }

  /** It tells the others which ports it found free. */
  async #startFirst(): Promise<Ports> {
    await checkPortsFree(this.#options);
    const ports = await this.#startOne();
    const { tls, hosts } = this.#listen;
    this.#listen = {
      ...this.#listen,
      port: ports.udpPort,
      others: ports.addresses.slice(hosts.length),
      tls: tls && { ...tls, port: ports.tlsPort!, httpsPort: ports.httpsPort },
    };
    return ports;
  }

  async #startOne(): Promise<Ports> {
    const { log, table, records } = this.#options;
    // A thread that replaces another goes on counting where that one stopped.
    const counters = this.#spare.pop() ?? createCounters();
    this.#counters.add(counters);
    const workerData: WorkerSetup = {
      ...{ config: this.#config, listen: this.#listen, stubZones: this.#stubZones, counters },
      ...{ memory: table.memory, records: records?.memory },
    };
    // The name is that of the thread, as `top -H` shows it.
    const worker = new Worker(siblingModule(import.meta.url, 'worker'), { workerData, name: 'dns' });
    this.#running.add(worker);
    worker.on('error', (error) => log.error('dns worker failed', { error }));
    worker.on('exit', () => this.#ended(worker, counters));
    return listening(worker, (message) => {
      if (message.kind === 'query') log.info('query', message.fields);
      else log.warn('dns worker', { line: message.line });
    });
  }

  #ended(worker: Worker, counters: SharedArrayBuffer): void {
    const { world, log } = this.#options;
    this.#running.delete(worker);
    this.#spare.push(counters);
    if (this.#isClosing) return;
    world.timers.after(restartMs, () => {
      if (this.#isClosing) return;
      this.#restarts += 1;
      this.#startOne().catch((error) => log.error('dns worker cannot be replaced', { error }));
    });
  }

  #setTls(material: TlsMaterial): void {
    const { tls } = this.#listen;
    if (tls) this.#listen = { ...this.#listen, tls: { ...tls, material } };
    this.#tell({ kind: 'tls', material });
  }

  async #takeOver(): Promise<void> {
    // Also for threads that come later.
    this.#listen = { ...this.#listen, takesOver: false };
    this.#tell({ kind: 'open' });
    await Promise.all(this.#held);
  }

  #tell(message: ToWorker): void {
    for (const worker of this.#running) worker.postMessage(message);
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
