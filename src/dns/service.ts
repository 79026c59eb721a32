// One thread's whole DNS service, sockets aside: reader, chain and responder, put together the same way in the main thread,
// in a worker and in tests.

import type { Log, LogFields } from '../base/log.ts';
import type { World } from '../base/world.ts';
import type { CatalogMemory, CatalogNews } from '../catalog/name-table.ts';
import { buildChain, type ChainConfig } from './chain.ts';
import { QueryObserver } from './observe.ts';
import { CatalogReader } from './reader.ts';
import { Responder } from './responder.ts';
import { type StubZone, StubZones } from './stub-zones.ts';
import { Trust } from './trust.ts';
import type { Exchange } from './upstream/exchange.ts';

export interface DnsServiceOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly config: ChainConfig;
  readonly memory: CatalogMemory;
  readonly stubZones: readonly StubZone[];
  readonly exchange: Exchange;
  /** Where this thread counts its answers. */
  readonly counters: SharedArrayBuffer;
  /** Where lines of the query log go. */
  readonly writeLine: (fields: LogFields) => void;
}

export class DnsService {
  readonly responder: Responder;
  readonly stubZones = new StubZones();
  readonly trust: Trust;
  readonly #reader: CatalogReader;

  constructor(options: DnsServiceOptions) {
    const { config, world, exchange, counters, writeLine } = options;
    this.#reader = new CatalogReader(options.memory);
    this.stubZones.replace(options.stubZones);
    this.trust = new Trust({ peers: config.peers, keys: config.keys ?? [] });
    const { clock } = world;
    const isLogging = () => this.#reader.isLogging;
    const observer = new QueryObserver({ clock, counters, isLogging, writeLine });
    const onAnswered = observer.answered.bind(observer);
    const { stubZones, trust } = this;
    this.responder = new Responder({
      chain: buildChain({ config, reader: this.#reader, stubZones, trust, world, exchange, onAnswered }),
      observer,
      clock,
      sourceOption: config.sourceOption,
      onFault: (error) => options.log.error('a query could not be answered', { error }),
    });
  }

  get reader(): CatalogReader {
    return this.#reader;
  }

  take(news: CatalogNews): void {
    this.#reader.take(news);
  }
}
