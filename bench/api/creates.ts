// Durable creates beside plain puts into etcd.

import { connect, startApi } from '../../test/support/api-process.ts';
import type { Figure } from '../report.ts';
import { startEtcd } from './etcd.ts';
import { inFlight, median, perSecond } from './load.ts';
import { createNamespace, creator } from './objects.ts';

const width = 64;
const rounds = 7;
const roundMs = 1500;

export async function measureCreates(directory: string): Promise<Figure[]> {
  const api = await startApi({ data: `${directory}/creates` });
  const etcd = await startEtcd(`${directory}/etcd`);
  try {
    const connection = await connect(api.kubeconfig);
    await createNamespace(connection);
    await inFlight(width, 3000, creator(connection, 'ConfigMap', 'warm'));
    await inFlight(width, 3000, creator(connection, 'Service', 'warm'));
    await inFlight(width, 2000, etcd.put);
    const oneByOne = await perSecond(1, 3000, creator(connection, 'ConfigMap', 'one'));
    // Alternating rounds, because the disk's speed drifts; the medians are compared.
    const rates = { configMaps: [] as number[], services: [] as number[], puts: [] as number[] };
    for (let round = 0; round < rounds; round += 1) {
      rates.puts.push(await perSecond(width, roundMs, etcd.put));
      rates.configMaps.push(await perSecond(width, roundMs, creator(connection, 'ConfigMap', `many-${round}`)));
      rates.services.push(await perSecond(width, roundMs, creator(connection, 'Service', `many-${round}`)));
    }
    connection.close();
    return [
      { name: 'durable creates, one by one', value: oneByOne, unit: '/s' },
      ...compared({
        creates: median(rates.configMaps),
        services: median(rates.services),
        puts: median(rates.puts),
      }),
    ];
  } finally {
    await etcd.stop();
    await api.stop();
  }
}

function compared({ creates, services, puts }: { creates: number; services: number; puts: number }): Figure[] {
  const wanted = "3 times etcd's puts";
  const isMet = creates >= 3 * puts;
  return [
    { name: 'plain puts into etcd, 64 in flight', value: puts, unit: '/s' },
    { name: 'durable creates, 64 in flight', value: creates, unit: '/s', wanted, isMet },
    { name: '  for each put of etcd', value: creates / puts, unit: '' },
    { name: 'Services with cluster IP and endpoints, 64 in flight', value: services, unit: '/s' },
    { name: '  for each put of etcd', value: services / puts, unit: '' },
  ];
}
