// Lets a running server explain its own answers: a second chain beside the serving ones, over the same catalog
// memory, that trusts the explainer to name the asking cluster. Its queries are not counted.

import { type Log, silentLog } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { FederationTable } from '../../catalog/federation/federation-table.ts';
import type { NameTable } from '../../catalog/names/name-table.ts';
import type { ExternalTable } from '../../catalog/outside/external-table.ts';
import type { PeerTable } from '../../catalog/outside/peer-table.ts';
import type { ChainConfig } from '../chain/chain.ts';
import { DnsService, type ZoneChange } from '../chain/service.ts';
import type { StubZone } from '../config/config.ts';
import { createCounters } from '../metrics/observe.ts';
import type { Exchange } from '../upstream/exchange.ts';
import { type ExplainRequest, explain, explainerAddress } from './explainer.ts';
import type { Explanation } from './explanation.ts';

export interface SelfExplainerOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log?: Log;
  readonly config: ChainConfig;
  readonly table: NameTable;
  readonly catalog?: Catalog;
  readonly federations?: readonly FederationTable[];
  readonly records?: NameTable;
  readonly peerTable?: PeerTable;
  readonly externalTable?: ExternalTable;
  readonly stubZones: readonly StubZone[];
  readonly exchange: Exchange;
}

export interface SelfExplainer {
  explain(request: ExplainRequest): Promise<Explanation>;
  setStubZones(zones: readonly StubZone[]): void;
  changeZones(change: ZoneChange): void;
  close(): void;
}

export function createSelfExplainer(options: SelfExplainerOptions): SelfExplainer {
  const { table, records, world } = options;
  const { trusted: listed } = options.config;
  const trusted = { ...listed, ranges: [...listed.ranges, explainerAddress] };
  const config = { ...options.config, trusted, clients: [...options.config.clients, explainerAddress] };
  const service = new DnsService({
    ...options,
    config,
    log: options.log ?? silentLog,
    memory: table.memory,
    records: records?.memory,
    counters: createCounters(),
    writeLine: () => {},
  });
  const stopNews = table.onNews((news) => service.take(news));
  const stopRecords = records?.onNews((news) => service.takeRecords(news));
  let forwardTo = config.forward?.nameservers ?? [];
  let { sourceOption } = config;
  return {
    explain: (request) =>
      explain(
        {
          ...options,
          service,
          clock: world.clock,
          sourceOption,
          forwardTo,
        },
        request,
      ),
    setStubZones: (zones) => service.stubZones.replace(zones),
    changeZones: (change) => {
      sourceOption = change.sourceOption ?? sourceOption;
      forwardTo = change.forward?.nameservers ?? forwardTo;
      service.changeZones(change);
    },
    close: () => {
      stopNews();
      stopRecords?.();
    },
  };
}
