import { describe, expect, test } from 'vitest';
import { addImport, makeCatalog, makeSlice } from '../dns/testing/ask.ts';
import type { CatalogChange } from './catalog.ts';

const name = 'db.shop.svc.clusterset.local';

describe('catalog: the first list', () => {
  test('facts come before everything has been read -> no names until then, then all of them once', () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster: 'east', endpoints: ['10.1.0.1'] }] });
    catalog.upsertEndpointSlice(makeSlice('shop/db', { cluster: 'west', endpoints: ['10.2.0.1'] }));
    catalog.flush();
    expect(catalog.table.get(name)).toBeUndefined();
    catalog.setSynced('imports');
    expect(catalog.table.get(name)!.sets[0]!.records).toHaveLength(2);
    expect(catalog.table.get('shop.svc.clusterset.local')).toBeDefined();
  });

  test('something goes again before everything has been read -> nothing is left of it', () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster: 'east', endpoints: ['10.1.0.1'] }] });
    catalog.removeEndpointSlice('shop/db-east');
    catalog.removeServiceImport('shop/db');
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
    catalog.removeEndpointSlice('shop/db-east');
    catalog.flush();
    expect(told).toMatchObject([{ namespace: 'shop', service: 'db' }]);
    expect(catalog.table.get('shop.svc.clusterset.local')).toBeUndefined();
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
});
