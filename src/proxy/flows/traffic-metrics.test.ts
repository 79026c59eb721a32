import { expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import { Totals } from './totals.ts';
import { registerTrafficMetrics } from './traffic-metrics.ts';

const west = { cluster: 'west', region: 'eu', zone: 'eu-1' };
const self = () => ({ cluster: 'east', zone: 'us-9' });

async function seriesOf(name: string, totals: Totals, pairsMax?: number): Promise<string[]> {
  const metrics = createMetrics();
  registerTrafficMetrics({ metrics, totals, self, pairsMax });
  return (await metrics.text()).split('\n').filter((line) => line.startsWith(`portolan_${name}{`));
}

test('metrics: connections and bytes by service, source and destination cluster; bytes by place', async () => {
  const totals = new Totals();
  totals.add('shop/web', west, { tried: 5, answered: 3, refused: 1, sent: 60, received: 600 });
  const labels = 'namespace="shop",service="web",destination_cluster="west",source_cluster="east"';
  expect(await seriesOf('proxy_connections_total', totals)).toEqual([
    `portolan_proxy_connections_total{${labels},outcome="tried"} 5`,
    `portolan_proxy_connections_total{${labels},outcome="answered"} 3`,
    `portolan_proxy_connections_total{${labels},outcome="refused"} 1`,
    `portolan_proxy_connections_total{${labels},outcome="reset"} 0`,
  ]);
  expect(await seriesOf('proxy_bytes_total', totals)).toEqual([
    `portolan_proxy_bytes_total{${labels},direction="sent"} 60`,
    `portolan_proxy_bytes_total{${labels},direction="received"} 600`,
  ]);
  expect((await seriesOf('proxy_place_bytes_total', totals))[0]).toBe(
    'portolan_proxy_place_bytes_total{source_cluster="east",source_region="",source_zone="us-9",destination_cluster="west",destination_region="eu",destination_zone="eu-1",direction="sent"} 60',
  );
});

test('metrics: more pairs than have series -> the rest is other, nothing is lost, and no count moves to another series', async () => {
  const totals = new Totals();
  const add = () => {
    totals.add('other', { cluster: '', region: '', zone: '' }, { sent: 1 });
    for (let each = 0; each < 1_500; each += 1) totals.add(`shop/s${each}`, west, { tried: 1 });
  };
  const tried = async () =>
    (await seriesOf('proxy_connections_total', totals, 10)).filter((line) => line.includes('outcome="tried"'));
  add();
  const before = await tried();
  expect(before, 'nine pairs, others in west, and bytes without a cluster').toHaveLength(11);
  expect(before.at(-1)).toMatch(/service="other",destination_cluster="west".* 1491$/);
  add();
  const after = await tried();
  expect(after.map((line) => line.split('} ')[0])).toEqual(before.map((line) => line.split('} ')[0]));
  expect(after.reduce((sum, line) => sum + Number(line.split('} ')[1]), 0)).toBe(3_000);
});
