import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VirtualTime } from '../../sim/virtual-time.ts';
import { decodeName } from '../base/dns/name.ts';
import { addImport, addService, makeCatalog, makeSlice, syncAll } from '../dns/testing/ask.ts';
import type { Catalog, CatalogChange } from './catalog.ts';

const name = 'db.shop.svc.clusterset.local';

test.each(['before', 'after'])(
  'catalog: the zone gets another name %s everything has been read -> exactly the names that a catalog of that zone has',
  (when) => {
    const made = (clustersetDomain: string | undefined, rename?: string) => {
      const catalog = makeCatalog({ clustersetDomain, hasClusterNames: true });
      addService(catalog, 'shop/web', { ips: ['10.96.0.7'] });
      addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'], ports: ['http:80'] });
      if (when === 'before' && rename) catalog.setClustersetDomain(rename);
      syncAll(catalog);
      if (when === 'after' && rename) catalog.setClustersetDomain(rename);
      addImport(catalog, 'data/db', { type: 'Headless', slices: [{ cluster: 'east', endpoints: ['10.1.0.1'] }] });
      catalog.facts.removeServiceImport('shop/checkout');
      catalog.flush();
      return [...catalog.table.nameKeys()].map((key) => decodeName(key)).sort();
    };
    expect(made(undefined, 'mesh.example')).toEqual(made('mesh.example'));
    expect(made('mesh.example')).toContain('db.data.svc.mesh.example');
  },
);

test('catalog: the zone gets another name -> the old names answer until all threads know, and the new ones do at once', async () => {
  const time = new VirtualTime();
  const catalog = makeCatalog({ timers: { after: (delayMs, run) => time.schedule(delayMs, run) } });
  addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'] });
  syncAll(catalog);
  const zonesWithName = () =>
    ['clusterset.local', 'mesh.example', 'local'].filter((zone) => catalog.table.has(`checkout.shop.svc.${zone}`));
  catalog.setClustersetDomain('mesh.example');
  expect(zonesWithName()).toEqual(['clusterset.local', 'mesh.example']);
  await time.advance(5000);
  expect(zonesWithName()).toEqual(['mesh.example']);
  // There and back again within that time, and into a zone that holds the old one.
  catalog.setClustersetDomain('clusterset.local');
  catalog.setClustersetDomain('mesh.example');
  await time.advance(5000);
  expect(zonesWithName()).toEqual(['mesh.example']);
  catalog.setClustersetDomain('clusterset.local');
  catalog.setClustersetDomain('local');
  await time.advance(5000);
  expect(zonesWithName()).toEqual(['local']);
});

describe('catalog: the first list', () => {
  test('facts come before everything has been read -> no names until then, then all of them once', () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster: 'east', endpoints: ['10.1.0.1'] }] });
    catalog.facts.upsertEndpointSlice(makeSlice('shop/db', { cluster: 'west', endpoints: ['10.2.0.1'] }));
    catalog.flush();
    expect(catalog.table.get(name)).toBeUndefined();
    catalog.setSynced('imports');
    expect(catalog.table.get(name)!.sets[0]!.records).toHaveLength(2);
    expect(catalog.table.get('shop.svc.clusterset.local')).toBeDefined();
  });

  test('something goes again before everything has been read -> nothing is left of it', () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster: 'east', endpoints: ['10.1.0.1'] }] });
    catalog.facts.removeEndpointSlice('shop/db-east');
    catalog.facts.removeServiceImport('shop/db');
    catalog.setSynced('imports');
    expect(catalog.table.get(name)).toBeUndefined();
    expect(catalog.table.get('shop.svc.clusterset.local')).toBeUndefined();
  });

  test('read again later -> changes are told one by one, and a name that goes takes its namespace along', () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster: 'east', endpoints: ['10.1.0.1'] }] });
    catalog.setSynced('imports');
    catalog.setSynced('imports');
    const told: CatalogChange[] = [];
    catalog.onChange((changes) => told.push(...changes));
    catalog.facts.removeEndpointSlice('shop/db-east');
    catalog.flush();
    expect(told).toMatchObject([{ namespace: 'shop', service: 'db' }]);
    expect(catalog.table.get('shop.svc.clusterset.local')).toBeUndefined();
  });

  test('an import that appears after the first sync -> its change has the time since which it could be imported', () => {
    const catalog = makeCatalog();
    const object = (name: string, annotations: Record<string, string> | null) =>
      catalog.facts.upsertServiceImport({
        metadata: { name, namespace: 'shop', annotations },
        spec: { ips: ['10.9.0.1'] },
      });
    const annotations = { 'portolan.dev/importable-since': '2026-01-01T00:00:05Z' };
    object('old', annotations);
    catalog.setSynced('imports');
    const told: CatalogChange[] = [];
    catalog.onChange((changes) => told.push(...changes));
    object('old', null);
    object('new', annotations);
    object('bare', null);
    catalog.flush();
    catalog.facts.upsertServiceImport({
      metadata: { name: 'new', namespace: 'shop', annotations },
      spec: { ips: ['10.9.0.2'] },
    });
    catalog.flush();
    const times = told.map(({ service, importableSinceMs }) => [service, importableSinceMs]);
    expect(times).toEqual([
      ['new', Date.parse('2026-01-01T00:00:05Z')],
      ['bare', undefined],
      ['new', undefined],
    ]);
  });

  test('names of clusters are switched on before the first sync -> they are there after it', () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster: 'east', endpoints: ['10.1.0.1'] }] });
    catalog.setClusterNames(true);
    catalog.setSynced('imports');
    expect(catalog.table.get(`east.${name}`)).toBeDefined();
    catalog.setClusterNames(false);
    expect(catalog.table.get(`east.${name}`)?.sets ?? []).toEqual([]);
  });

  test('facts change between two turns of making names -> as if they had come first, and nothing is counted twice', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(someChange, fc.nat(services - 1)), { minLength: 30, maxLength: 90 }), (steps) => {
        const turned = readCatalog();
        const turns = turned.fill('imports')[Symbol.iterator]();
        for (const [i, [change, n]] of steps.entries()) {
          if (i % 10 === 0) turns.next();
          changes[change](turned, n);
          if (i % 7 === 0) turned.flush();
        }
        turned.setSynced('imports');
        const straight = readCatalog();
        for (const [change, n] of steps) changes[change](straight, n);
        straight.setSynced('imports');
        expect(contentOf(turned)).toEqual(contentOf(straight));
        for (let n = 0; n < 2 * services; n++) changes.goes(turned, n);
        turned.flush();
        expect([...contentOf(turned).keys()]).toEqual([...contentOf(makeReadCatalog()).keys()]);
      }),
      { numRuns: 8 },
    );
  });
});

const services = 1300;
const keyOf = (n: number) => `ns-${n % 3}/svc-${n}`;
const sliceOf = (n: number, address: string) => makeSlice(keyOf(n), { cluster: 'east', endpoints: [address] });
const add = (catalog: Catalog, n: number) =>
  addImport(catalog, keyOf(n), { type: 'Headless', slices: [{ cluster: 'east', endpoints: [`10.1.0.${n % 200}`] }] });

const changes = {
  moves: (catalog: Catalog, n: number) => catalog.facts.upsertEndpointSlice(sliceOf(n, '10.9.9.9')),
  goes: (catalog: Catalog, n: number) => {
    catalog.facts.removeEndpointSlice(`${keyOf(n)}-east`);
    catalog.facts.removeServiceImport(keyOf(n));
  },
  'loses its slice': (catalog: Catalog, n: number) => catalog.facts.removeEndpointSlice(`${keyOf(n)}-east`),
  'comes back': add,
  'comes new': (catalog: Catalog, n: number) => add(catalog, services + n),
  'goes, the new one': (catalog: Catalog, n: number) => changes.goes(catalog, services + n),
};
const someChange = fc.constantFrom(...(Object.keys(changes) as (keyof typeof changes)[]));

function readCatalog(): Catalog {
  const catalog = makeCatalog();
  for (let n = 0; n < services; n++) add(catalog, n);
  return catalog;
}

function makeReadCatalog(): Catalog {
  const catalog = makeCatalog();
  catalog.setSynced('imports');
  return catalog;
}

/** Every name with its answers, in the order of names. */
function contentOf({ table }: Catalog): Map<string, unknown> {
  const names = [...table.nameKeys()].map((key) => decodeName(key)).sort();
  return new Map(names.map((name) => [name, table.get(name)]));
}

test('catalog: an import with an address and an endpoint that is not ready -> the name does not depend on it, and the reason is told', () => {
  const catalog = makeCatalog();
  const slices = [{ cluster: 'east', endpoints: ['10.1.0.1', { ip: '10.1.0.2', ready: false }] }];
  addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'], ports: ['http:80'], slices });
  syncAll(catalog);
  const [set] = catalog.table.get('checkout.shop.svc.clusterset.local')!.sets;
  expect(set!.records.map(({ rdata }) => rdata.join('.'))).toEqual(['243.0.0.7']);
  expect(catalog.namesOf('i/shop/checkout').leftOut).toEqual([
    { what: expect.stringContaining('endpoint 10-1-0-2'), why: 'not ready' },
  ]);
  // Names of clusters do depend on them.
  catalog.setClusterNames(true);
  const east = catalog.table.get('east.checkout.shop.svc.clusterset.local')!.sets[0]!;
  expect(east.records.map(({ rdata }) => rdata.join('.'))).toEqual(['10.1.0.1']);
});
