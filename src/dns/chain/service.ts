// One thread's whole DNS service, sockets aside: reader, chain and responder, put together the same way in the main thread,
// in a worker and in tests.

import type { Log, LogFields } from '../../base/log.ts';
import { LogBudget, packetFaults } from '../../base/log-budget.ts';
import type { World } from '../../base/world.ts';
import type { CatalogMemory, CatalogNews } from '../../catalog/names/name-table.ts';
import type { StubZone } from '../config/config.ts';
import type { Handler } from '../message/handler.ts';
import type { Query } from '../message/wire.ts';
import { QueryObserver, serverStatsIn, type Tally, tallyIn } from '../metrics/observe.ts';
import { describeSource, Trust } from '../source/trusted-servers.ts';
import { StubZones } from '../stub-zones/stub-zones.ts';
import type { Exchange } from '../upstream/exchange.ts';
import { CatalogReader } from '../zones/reader.ts';
import { buildChain, type ChainConfig } from './chain.ts';
import { Responder } from './responder.ts';

export interface DnsServiceOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly config: ChainConfig;
  readonly memory: CatalogMemory;
  /** Static records; given with `config.local`. */
  readonly records?: CatalogMemory | undefined;
  readonly stubZones: readonly StubZone[];
  readonly exchange: Exchange;
  /** Where this thread counts its answers. */
  readonly counters: SharedArrayBuffer;
  /** Where lines of the query log go. */
  readonly writeLine: (fields: LogFields) => void;
}

/** Settings that may change while the server runs. Plain data, so that it can be sent to a worker thread. */
export type ZoneChange = Partial<
  Pick<ChainConfig, 'clustersetZone' | 'federationZones' | 'sourceOption' | 'local' | 'forward'>
>;

export class DnsService {
  readonly responder: Responder;
  readonly stubZones = new StubZones();
  readonly trust: Trust;
  readonly tally: Tally;
  readonly #reader: CatalogReader;
  readonly #records: CatalogReader | undefined;
  readonly #chainOf: (config: ChainConfig) => Handler[];
  #config: ChainConfig;

  constructor(options: DnsServiceOptions) {
    const { config, world, exchange, counters, writeLine } = options;
    this.#reader = new CatalogReader(options.memory);
    this.#records = options.records && new CatalogReader(options.records);
    this.stubZones.replace(options.stubZones);
    this.trust = new Trust({ trusted: config.trusted, keys: config.keys ?? [] });
    const { clock } = world;
    this.tally = tallyIn(counters);
    const sourceOf = (query: Query) => describeSource(query, this.trust.trusted);
    const isLogging = () => this.#reader.isLogging;
    const observer = new QueryObserver({ clock, counters, isLogging, writeLine, sourceOf });
    const onAnswered = observer.answered.bind(observer);
    const onFault = this.#faultLog(options);
    const parts = {
      reader: this.#reader,
      records: this.#records,
      stubZones: this.stubZones,
      trust: this.trust,
      world,
      exchange,
      tally: this.tally,
      serverStats: serverStatsIn(counters),
      onAnswered,
      onFault,
    };
    this.#config = config;
    this.#chainOf = (wanted) => buildChain({ ...parts, config: wanted });
    this.responder = new Responder({
      chain: this.#chainOf(config),
      observer,
      clock,
      sourceOption: config.sourceOption,
      onFault,
    });
  }

  #faultLog({ log, world }: DnsServiceOptions): (error: unknown) => void {
    const budget = new LogBudget(world.clock, packetFaults);
    return (error) => {
      this.tally.add('droppedFault');
      const fields = budget.take();
      if (fields) log.error('a query could not be answered', { error, ...fields });
    };
  }

  get reader(): CatalogReader {
    return this.#reader;
  }

  /** From the next query on. Replies kept from other servers are forgotten: this happens once in a long time. */
  changeZones(change: ZoneChange): void {
    this.#config = { ...this.#config, ...change };
    this.responder.replaceChain(this.#chainOf(this.#config));
    this.responder.query.sourceOption = this.#config.sourceOption;
  }

  take(news: CatalogNews): void {
    this.#reader.take(news);
  }

  takeRecords(news: CatalogNews): void {
    this.#records?.take(news);
  }
}
