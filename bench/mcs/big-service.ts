// One endpoint's change in a service of 5,000: how long until the other cluster has it, and what moves on the way.

import { service, serviceExport, slice } from '../../sim/manifests.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { endpointSliceType, sourceClusterLabel } from '../../src/kube/objects/endpoint-slice.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { type Figure, percentile } from '../report.ts';
import { watchArrivals } from './arrivals.ts';
import { type BenchCluster, pause, startSet, stopSet, untilImported } from './clusterset.ts';

const sliceCount = 50;
const changes = 100;
const bytesWanted = 16 * 1024;

export async function measureBigService(): Promise<Figure[]> {
  const running = await startSet(2);
  const [source, reader] = running.clusters as [BenchCluster, BenchCluster];
  await source.client.create(serviceType, service('shop/big'));
  for (let index = 0; index < sliceCount; index += 1)
    await source.client.create(endpointSliceType, sliceOf(index, endpointsOf(index)));
  await source.client.create(serviceExportType, serviceExport('shop/big'));
  await untilImported(reader.client, { services: 1, slices: sliceCount });
  await pause(2_000);
  const clients = new Map(running.clusters.map(({ id, client }) => [id, client]));
  const arrivals = await watchArrivals(clients, sourceClusterLabel);
  const bytes: number[] = [];
  for (let index = 0; index < changes; index += 1) {
    const address = `10.201.0.${index + 1}`;
    const at = index % sliceCount;
    const { metadata, endpoints } = sliceOf(at, [address, ...endpointsOf(at).slice(1)]);
    const before = reader.bytesFromBroker.count;
    arrivals.expect(address);
    await source.client.patch(endpointSliceType, metadata, { kind: 'merge', body: { endpoints } });
    await pause(200);
    bytes.push(reader.bytesFromBroker.count - before);
  }
  await arrivals.settle();
  arrivals.stop();
  await stopSet(running);
  return figures(arrivals.sortedMs(), bytes);
}

// The median of the bytes: a lease that is renewed meanwhile is no part of the change.
function figures(sortedMs: readonly number[], bytes: readonly number[]): Figure[] {
  const moved = percentile(
    bytes.toSorted((a, b) => a - b),
    0.5,
  );
  const what = 'one of 5,000 endpoints';
  return [
    { name: `${what}: change to the last cluster, p50`, value: percentile(sortedMs, 0.5), unit: 'ms' },
    { name: `${what}: change to the last cluster, p99`, value: percentile(sortedMs, 0.99), unit: 'ms' },
    {
      name: `${what}: bytes moved to an importing cluster`,
      value: moved,
      unit: 'B',
      wanted: 'at most 16 KiB',
      isMet: moved <= bytesWanted,
    },
  ];
}

function sliceOf(index: number, endpoints: readonly string[]) {
  return slice('shop/big', { endpoints, suffix: `p${index}` });
}

function endpointsOf(index: number): string[] {
  return Array.from({ length: 100 }, (_, at) => `10.${index}.1.${at + 1}`);
}
