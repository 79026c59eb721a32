// The ranges that a node's proxy serves: those of the ClusterSet, as the agent copies them into the home.

import { expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { formatRange, type IpRange } from '../../src/base/net/ip.ts';
import { type ClusterSet, clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { attachProxy } from '../../src/proxy/attach.ts';
import { ProxyState } from '../../src/proxy/state.ts';
import { emptyViewInput, viewOf } from '../../src/proxy/view.ts';
import { SimClusterSet, setName } from '../clusterset.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';

async function start(refusal: (ranges: string) => string = () => '') {
  const ranges = { clusterSet: ['244.1.0.0/24'] };
  const set = await new SimClusterSet({ clusters: ['east'], set: { addressRanges: ranges } }).start({
    namespaces: ['shop'],
  });
  await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
  await set.time.advance(4_000);
  const asked: string[] = [];
  const useRanges = async (wanted: readonly IpRange[]) => {
    const text = wanted.map(formatRange).join();
    asked.push(text);
    return refusal(text);
  };
  const world = set.simulation.world('proxy');
  const state = new ProxyState(viewOf(emptyViewInput));
  const client = set.home('east').clientOf(world);
  const attachment = attachProxy({ client, world, log: silentLog, state, view: emptyViewInput, useRanges });
  await set.time.advance(10_000);
  const change = async (clusterSet: string[]) => {
    const ref = { namespace: setName, name: setName };
    const present = await set.broker.admin.get<ClusterSet>(clusterSetType, ref);
    const wanted = { ...present, spec: { ...present.spec, addressRanges: { clusterSet } } };
    await set.broker.admin.update(clusterSetType, wanted as ClusterSet);
    await set.time.advance(8_000);
  };
  const ips = (of = key) => state.choiceOf(of).ports.map(({ ip }) => ip);
  return { set, attachment, asked, change, ips };
}

test('proxy: a set with a range of its own -> served without a flag; changed -> also the new one, while the old is in use', async () => {
  const { set, attachment, asked, change, ips } = await start();
  const old = expect.stringMatching(/^244\.1\.0\./);
  expect(attachment.hasSynced()).toBe(true);
  expect([asked, ips()]).toEqual([['244.1.0.0/24'], [old]]);
  await change(['244.2.0.0/24']);
  await exportService(set.home('east').admin, 'shop/cart', { endpoints: ['10.1.0.2'] });
  await set.time.advance(4_000);
  expect(asked).toEqual(['244.1.0.0/24', '244.2.0.0/24,244.1.0.0/24']);
  expect([ips(), ips('shop/cart')]).toEqual([[old], [expect.stringMatching(/^244\.2\.0\./)]]);
  await set.home('east').admin.delete(serviceExportType, { namespace: 'shop', name: 'checkout' });
  await set.time.advance(4_000);
  await change(['244.3.0.0/24']);
  expect(asked.at(-1)).toBe('244.3.0.0/24,244.2.0.0/24');
});

test('proxy: stopped -> follows nothing any more, and asks for no range', async () => {
  const { attachment, asked, change } = await start();
  attachment.stop();
  await change(['244.2.0.0/24']);
  expect(asked).toEqual(['244.1.0.0/24']);
});

test('proxy: a range that this node cannot serve -> not ready, tried again; free -> served', async () => {
  const isFree = { now: false };
  const { set, attachment, asked, ips } = await start(() => (isFree.now ? '' : 'taken'));
  expect([attachment.hasSynced(), ips()]).toEqual([false, []]);
  await set.time.advance(25_000);
  expect(asked.length).toBeGreaterThan(2);
  isFree.now = true;
  await set.time.advance(12_000);
  expect([attachment.hasSynced(), ips().length]).toEqual([true, 1]);
});
