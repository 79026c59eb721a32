// One thread's whole DNS service, sockets aside: reader, chain and responder, put together the same way in the main thread,
// in a worker and in tests.

import type { Log, LogFields } from '../base/log.ts';
import type { World } from '../base/world.ts';
import type { CatalogMemory, CatalogNews } from '../catalog/name-table.ts';
import type { Zone } from '../catalog/zones.ts';
import { buildChain, type ChainConfig } from './chain.ts';
import type { Handler } from './handler.ts';
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

/** What federations may change while the server runs. Plain data, so that a worker thread can be told. */
export interface FederationSettings {
  readonly zones: readonly Zone[];
  /** Code of the EDNS option that names the asking cluster. */
  readonly sourceOption: number;
}

export class DnsService {
  readonly responder: Responder;
  readonly stubZones = new StubZones();
  readonly trust: Trust;
  readonly #reader: CatalogReader;
  readonly #chainOf: (settings: FederationSettings) => Handler[];

  constructor(options: DnsServiceOptions) {
    const { config, world, exchange, counters, writeLine } = options;
    this.#reader = new CatalogReader(options.memory);
    this.stubZones.replace(options.stubZones);
    this.trust = new Trust({ peers: config.peers, keys: config.keys ?? [] });
    const { clock } = world;
    const isLogging = () => this.#reader.isLogging;
    const observer = new QueryObserver({ clock, counters, isLogging, writeLine });
    const onAnswered = observer.answered.bind(observer);
    const parts = { reader: this.#reader, stubZones: this.stubZones, trust: this.trust, world, exchange, onAnswered };
    this.#chainOf = ({ zones, sourceOption }) =>
      buildChain({ ...parts, config: { ...config, federationZones: zones, sourceOption } });
    this.responder = new Responder({
      chain: buildChain({ ...parts, config }),
      observer,
      clock,
      sourceOption: config.sourceOption,
      onFault: (error) => options.log.error('a query could not be answered', { error }),
    });
  }

  get reader(): CatalogReader {
    return this.#reader;
  }

  /** From the next query on. Replies kept from other servers are forgotten: this happens once in a long time. */
  setFederations(settings: FederationSettings): void {
    this.responder.replaceChain(this.#chainOf(settings));
    this.responder.query.sourceOption = settings.sourceOption;
  }

  take(news: CatalogNews): void {
    this.#reader.take(news);
  }
}
