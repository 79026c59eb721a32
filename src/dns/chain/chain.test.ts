// The path of every query is one list, in one order.

import { expect, test } from 'vitest';
import { FederationTable } from '../../catalog/federation/federation-table.ts';
import { nobody } from '../config/config.ts';
import { Trust } from '../source/trusted-servers.ts';
import { StubZones } from '../stub-zones/stub-zones.ts';
import { makeCatalog, stillClock, throwFault } from '../testing/ask.ts';
import { CatalogReader } from '../zones/reader.ts';
import { buildChain, type ChainParts } from './chain.ts';

function namesOf(config: Partial<ChainParts['config']>): string[] {
  const catalog = makeCatalog();
  const parts: ChainParts = {
    config: {
      serverId: 'test',
      clients: [],
      cluster: catalog.cluster,
      localCluster: catalog.localCluster,
      federationZones: [],
      sourceOption: 65_001,
      trusted: nobody,
      ...config,
    },
    reader: new CatalogReader(catalog.table.memory),
    stubZones: new StubZones(),
    trust: new Trust({ trusted: nobody, keys: [] }),
    world: {
      clock: stillClock,
      timers: { after: () => ({ cancel: () => {} }) },
      random: { float: () => 0, bytes: (count) => new Uint8Array(count), uuid: () => '' },
    },
    exchange: { ask: () => Promise.reject(new Error('no network')), close: () => {} },
    onFault: throwFault,
  };
  return buildChain(parts).map(({ name }) => name);
}

test('chain: a resolver that is an authority too -> who may ask, our own zones, stub zones, the rest, in this order', () => {
  const catalog = makeCatalog();
  const { zone } = new FederationTable({ table: catalog.table });
  const { clusterZone, clustersetZone } = catalog;
  const forward = { nameservers: ['192.0.2.53'] };
  expect(namesOf({ clusterZone, clustersetZone, federationZones: [zone], forward })).toEqual([
    ...['acl', 'edns', 'cookies', 'tsig', 'meta', 'chaos', 'special'],
    ...['cluster', 'clusterset', 'authority', 'stub', 'reverse', 'forward', 'refuse'],
  ]);
});

test('chain: an authority alone -> nothing of a cluster, and nothing is forwarded', () => {
  const { zone } = new FederationTable({ table: makeCatalog().table });
  const names = namesOf({ federationZones: [zone] });
  expect(names).toEqual(['acl', 'edns', 'cookies', 'tsig', 'meta', 'chaos', 'authority', 'stub', 'refuse']);
});
