// Answers made of endpoints by the locality rule: own zone and cluster, own cluster, zone, region, anywhere (seed 003, user
// story 2).

import { describe, expect, test } from 'vitest';
import type { LocalityPreference } from '../clusterset/kinds/cluster-set.ts';
import { Asker, addImport, makeCatalog, makeSlice, syncAll } from './testing/ask.ts';

const name = 'checkout.shop.svc.clusterset.local';
const clusters = new Map([
  ['near', { zone: 'eu-1', region: 'eu' }],
  ['region', { zone: 'eu-2', region: 'eu' }],
  ['far', { zone: 'us-1', region: 'us' }],
]);
const tiers = [
  { cluster: 'west', name: 'c-own-zone', endpoints: [{ ip: '10.0.1.1', zone: 'eu-1' }] },
  { cluster: 'west', name: 'c-own', endpoints: [{ ip: '10.0.2.1', zone: 'eu-9' }] },
  { cluster: 'near', endpoints: ['10.0.3.1'] },
  { cluster: 'region', endpoints: ['10.0.4.1'] },
  { cluster: 'far', endpoints: ['10.0.5.1', '10.0.5.2'] },
];

function located(request: { type: 'Headless' | 'ClusterSetIP'; preference: LocalityPreference; wish?: string }) {
  const catalog = makeCatalog({ cluster: { id: 'west', zone: 'eu-1', region: 'eu' } });
  const slices = tiers.map((slice) => ({ ...slice, ports: ['http:8080'] }));
  addImport(catalog, 'shop/checkout', { type: request.type, trafficDistribution: request.wish, slices });
  syncAll(catalog);
  catalog.setLocality({ preference: request.preference, clusters });
  const asker = new Asker(catalog);
  const ask = async (type = 'A') => (await asker.ask(`${name} ${type}`)).split(', ').sort().join(', ');
  const lose = ({ cluster, name: slice }: { cluster: string; name?: string }) => {
    catalog.facts.removeEndpointSlice(`shop/${slice ?? `checkout-${cluster}`}`);
    catalog.flush();
  };
  return { catalog, asker, ask, lose };
}

describe('dns: the nearest endpoints', () => {
  for (const type of ['Headless', 'ClusterSetIP'] as const) {
    test(`dns: ${type} without an IP, NearestFirst, tier by tier lost -> own zone, own cluster, zone, region, anywhere [003-22]`, async () => {
      const { ask, lose } = located({ type, preference: 'NearestFirst' });
      const answers: string[] = [];
      for (const tier of tiers) {
        answers.push(await ask());
        lose(tier);
      }
      expect(answers).toEqual(['10.0.1.1', '10.0.2.1', '10.0.3.1', '10.0.4.1', '10.0.5.1, 10.0.5.2']);
    });
  }

  test('dns: Spread -> every ready endpoint; the service prefers close ones -> only those', async () => {
    const spread = located({ type: 'Headless', preference: 'Spread' });
    expect((await spread.ask()).split(', ')).toHaveLength(6);
    const close = located({ type: 'Headless', preference: 'Spread', wish: 'PreferClose' });
    expect(await close.ask()).toBe('10.0.1.1');
  });

  test('dns: NearestFirst -> SRV leads to the same endpoints, and every endpoint keeps its own name', async () => {
    const { ask, asker } = located({ type: 'Headless', preference: 'NearestFirst' });
    expect(await ask('SRV')).toBe(`8080 10-0-1-1.west.${name}`);
    expect(await asker.ask(`10-0-5-1.far.${name} A`)).toBe('10.0.5.1');
  });

  test('dns: a nearer endpoint is not ready -> the next tier; ready again -> back', async () => {
    const { catalog, ask } = located({ type: 'Headless', preference: 'NearestFirst' });
    const change = (ready: boolean) => {
      const endpoints = [{ ip: '10.0.1.1', zone: 'eu-1', ready }];
      catalog.facts.upsertEndpointSlice(makeSlice('shop/checkout', { cluster: 'west', name: 'c-own-zone', endpoints }));
      catalog.flush();
    };
    change(false);
    expect(await ask()).toBe('10.0.2.1');
    change(true);
    expect(await ask()).toBe('10.0.1.1');
  });

  test('dns: the set changes its mind while the server runs -> answers follow, and say what was left out', async () => {
    const { catalog, ask } = located({ type: 'Headless', preference: 'Spread' });
    catalog.setLocality({ preference: 'NearestFirst', clusters });
    expect(await ask()).toBe('10.0.1.1');
    expect(catalog.namesOf('i/shop/checkout').leftOut.map(({ what }) => what)).toEqual([
      `5 of 6 ready endpoints of ${name}`,
    ]);
    catalog.setLocality({ preference: 'Spread', clusters });
    expect((await ask()).split(', ')).toHaveLength(6);
  });
});
