import { describe, expect, test } from 'vitest';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { SimClusterSet } from '../clusterset.ts';
import { find, importLine, sliceLines } from '../look.ts';
import { exportService } from '../manifests.ts';

const clusters = ['east', 'west', 'north'];
const imported = 'ClusterSetIP http:80/TCP from east';

async function ipsOf(set: SimClusterSet, key: string): Promise<unknown> {
  return Promise.all(
    [...set.homes.values()].map(
      async ({ admin }) => (await find<ServiceImport>(admin, serviceImportType, key))?.spec.ips,
    ),
  );
}

/** Looks ten times a second for so long. */
async function alwaysImported(set: SimClusterSet, keys: readonly string[], durationMs: number): Promise<void> {
  for (let passedMs = 0; passedMs < durationMs; passedMs += 100) {
    await set.time.advance(100);
    for (const key of keys) {
      for (const { name, admin } of set.homes.values()) {
        expect([passedMs, name, key, await importLine(admin, key)]).toEqual([passedMs, name, key, imported]);
        expect((await sliceLines(admin, key)).length, `${name} ${key} after ${passedMs} ms`).toBe(1);
      }
    }
  }
}

describe('snapshot restore', () => {
  for (const ageMs of [2_000, 90_000]) {
    test(`snapshot restore: the broker's of ${ageMs / 1000} s before -> no import and no endpoint is away for a moment, addresses stay, a withdrawn export goes`, async () => {
      const set = await new SimClusterSet({ clusters }).start({ namespaces: ['shop'] });
      const east = set.home('east').admin;
      await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
      await exportService(east, 'shop/ghost', { endpoints: ['10.1.0.3'] });
      await set.time.advance(23_000);
      const snapshot = set.broker.snapshot();
      await exportService(east, 'shop/later', { endpoints: ['10.1.0.4'] });
      await east.delete(serviceExportType, { namespace: 'shop', name: 'ghost' });
      await set.time.advance(ageMs);
      const addresses = [await ipsOf(set, 'shop/cart'), await ipsOf(set, 'shop/later')];
      const revision = set.broker.revision;
      await set.broker.restoreSnapshot(snapshot);
      expect(set.broker.revision).toBeGreaterThan(revision + 900_000_000);
      await alwaysImported(set, ['shop/cart', 'shop/later'], 45_000);
      expect([await ipsOf(set, 'shop/cart'), await ipsOf(set, 'shop/later')]).toEqual(addresses);
      for (const { admin } of set.homes.values()) expect(await importLine(admin, 'shop/ghost')).toBe('none');
    });
  }

  test('snapshot restore: an export of after the snapshot that is withdrawn while the broker is down -> gone when its writer had time', async () => {
    const set = await new SimClusterSet({ clusters }).start({ namespaces: ['shop'] });
    const east = set.home('east').admin;
    await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await set.time.advance(23_000);
    const snapshot = set.broker.snapshot();
    await exportService(east, 'shop/later', { endpoints: ['10.1.0.4'] });
    await set.time.advance(5_000);
    set.broker.kill();
    await east.delete(serviceExportType, { namespace: 'shop', name: 'later' });
    await set.time.advance(1_000);
    await set.broker.restoreSnapshot(snapshot);
    await set.time.advance(60_000);
    for (const { admin } of set.homes.values()) expect(await importLine(admin, 'shop/later')).toBe('none');
    await alwaysImported(set, ['shop/cart'], 1_000);
  });

  test("snapshot restore: a member's home -> its imports keep their addresses, its exports stay with the others", async () => {
    const set = await new SimClusterSet({ clusters }).start({ namespaces: ['shop'] });
    await exportService(set.home('east').admin, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await set.time.advance(23_000);
    const addresses = await ipsOf(set, 'shop/cart');
    const snapshot = set.home('east').snapshot();
    await set.time.advance(10_000);
    await set.home('east').restoreSnapshot(snapshot);
    await alwaysImported(set, ['shop/cart'], 20_000);
    expect(await ipsOf(set, 'shop/cart')).toEqual(addresses);
  });
});
