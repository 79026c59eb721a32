// Changes at a steady pace, one endpoint each, spread over all services: how long until the last cluster has them. Beside
// it, as a measure of the machine at that time, how long the same write takes to the watchers of its own home.

import { slice } from '../../sim/manifests.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { endpointSliceType, sourceClusterLabel } from '../../src/kube/objects/endpoint-slice.ts';
import { type Figure, percentile } from '../report.ts';
import { watchArrivals } from './arrivals.ts';
import { pause } from './clusterset.ts';

export interface BenchMember {
  readonly id: string;
  readonly client: Client;
}

export interface ChangesOptions {
  readonly name: string;
  readonly services: number;
  readonly seconds: number;
  readonly changesPerSecond: number;
  readonly p99MsWanted?: number;
  /** Goes on until then, also after those seconds. */
  readonly until?: Promise<unknown>;
  /** Second byte of the addresses it writes; another one in each run of the same set. */
  readonly network?: number;
}

export async function measureChanges(clusters: readonly BenchMember[], options: ChangesOptions): Promise<Figure[]> {
  const { name, p99MsWanted, network = 200, until } = options;
  let isOver = until === undefined;
  const end = () => (isOver = true);
  void until?.then(end, end);
  const clients = new Map(clusters.map(({ id, client }) => [id, client]));
  const [imported, atHome] = [await watchArrivals(clients, sourceClusterLabel), await watchSources(clusters)];
  for (let index = 0; index < options.seconds * options.changesPerSecond || !isOver; index += 1) {
    const at = index % options.services;
    const cluster = clusters[at % clusters.length]!;
    const address = `10.${network}.${Math.floor(index / 250)}.${1 + (index % 250)}`;
    const { metadata, endpoints } = slice(`shop/s${at}`, { endpoints: [address, '10.1.0.2'] });
    imported.expect(address);
    atHome.get(cluster.id)!.expect(address);
    void cluster.client.patch(endpointSliceType, metadata, { kind: 'merge', body: { endpoints } });
    await pause(1000 / options.changesPerSecond);
  }
  await imported.settle();
  for (const arrivals of [imported, ...atHome.values()]) arrivals.stop();
  const sortedMs = imported.sortedMs();
  const homeMs = [...atHome.values()].flatMap((arrivals) => arrivals.sortedMs()).sort((a, b) => a - b);
  const p99 = percentile(sortedMs, 0.99);
  const wanted = p99MsWanted === undefined ? {} : { wanted: `under ${p99MsWanted} ms`, isMet: p99 < p99MsWanted };
  return [
    { name: `${name}: change to the last cluster, p50`, value: percentile(sortedMs, 0.5), unit: 'ms' },
    { name: `${name}: change to the last cluster, p99`, value: p99, unit: 'ms', ...wanted },
    { name: `${name}: the same write to its own home's watchers, p50`, value: percentile(homeMs, 0.5), unit: 'ms' },
    { name: `${name}: the same write to its own home's watchers, p99`, value: percentile(homeMs, 0.99), unit: 'ms' },
  ];
}

async function watchSources(clusters: readonly BenchMember[]) {
  const watches = clusters.map(
    async ({ id, client }) => [id, await watchArrivals(new Map([[id, client]]), `!${sourceClusterLabel}`)] as const,
  );
  return new Map(await Promise.all(watches));
}
