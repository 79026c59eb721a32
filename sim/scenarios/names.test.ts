// A client's view of a clusterset: names answered from a home that an agent keeps.

import { expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { Attachment } from '../../src/catalog/attach.ts';
import { Catalog } from '../../src/catalog/catalog.ts';
import { Asker } from '../../src/dns/testing/ask.ts';
import { SimClusterSet } from '../clusterset.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/db';
const name = 'db.shop.svc.clusterset.local';

test('names: the lease of a cluster runs out -> its endpoints leave the answer, and are back when it renews [003-68, 003-69]', async () => {
  const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
  for (const [at, id] of ['east', 'west'].entries())
    await exportService(set.home(id).admin, key, { endpoints: [`10.${at + 1}.0.1`], spec: { clusterIP: 'None' } });
  const world = set.simulation.world('dns-west');
  const catalog = new Catalog({ clock: world.clock, timers: world.timers, cluster: { id: 'west' } });
  const attachment = new Attachment({ catalog, client: set.home('west').clientOf(world), world, log: silentLog });
  const asker = new Asker(catalog);
  const answer = async () => (await asker.ask(`${name} A`)).split(', ').sort().join(', ');
  await set.time.advance(10_000);
  expect(await answer()).toBe('10.1.0.1, 10.2.0.1');
  set.killAgent('east');
  await set.time.advance(20_000);
  expect(await answer()).toBe('10.1.0.1, 10.2.0.1');
  await set.time.advance(40_000);
  expect(await answer()).toBe('10.2.0.1');
  expect(await asker.ask(`10-1-0-1.east.${name} A`)).toBe('NXDOMAIN');
  set.startAgent('east');
  await set.time.advance(15_000);
  expect(await answer()).toBe('10.1.0.1, 10.2.0.1');
  attachment.stop();
});
