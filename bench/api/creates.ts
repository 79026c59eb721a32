// Durable creates beside plain puts into etcd. Both sides take turns in short rounds, because the disk's speed drifts;
// their medians are compared.

import { type Connection, connect, startApi } from '../../test/support/api-process.ts';
import type { Figure } from '../report.ts';
import { type Etcd, startEtcd } from './etcd.ts';
import { inFlight, median, perSecond } from './load.ts';
import { createNamespace, creator, untilEachHasSlices } from './objects.ts';

const width = 64;
const rounds = 7;
const roundMs = 1500;
const warmCount = 3000;

export async function measureCreates(directory: string): Promise<Figure[]> {
  const api = await startApi({ data: `${directory}/creates` });
  const etcd = await startEtcd(`${directory}/etcd`);
  try {
    const connection = await connect(api.kubeconfig);
    await createNamespace(connection);
    const figures = [...(await plainObjects(connection, etcd)), ...(await services(connection))];
    connection.close();
    return figures;
  } finally {
    await etcd.stop();
    await api.stop();
  }
}

async function plainObjects(connection: Connection, etcd: Etcd): Promise<Figure[]> {
  await inFlight(width, warmCount, creator(connection, 'ConfigMap', 'warm'));
  await inFlight(width, warmCount, etcd.put);
  const oneByOne = await perSecond(1, 3000, creator(connection, 'ConfigMap', 'one'));
  const rates = { creates: [] as number[], puts: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    rates.puts.push(await perSecond(width, roundMs, etcd.put));
    rates.creates.push(await perSecond(width, roundMs, creator(connection, 'ConfigMap', `many-${round}`)));
  }
  const [creates, puts] = [median(rates.creates), median(rates.puts)];
  const wanted = "3 times etcd's puts";
  return [
    { name: 'durable creates, one by one', value: oneByOne, unit: '/s' },
    { name: 'plain puts into etcd, 64 in flight', value: puts, unit: '/s' },
    { name: 'durable creates, 64 in flight', value: creates, unit: '/s', wanted, isMet: creates >= 3 * puts },
    { name: '  for each put of etcd', value: creates / puts, unit: 'times' },
  ];
}

/** The kind that costs most: an address is taken with it, and a controller makes its endpoints. */
async function services(connection: Connection): Promise<Figure[]> {
  const create = creator(connection, 'Service', 'many');
  await inFlight(width, warmCount, create);
  await untilEachHasSlices(connection);
  const rate = await perSecond(width, 2 * roundMs, create);
  await untilEachHasSlices(connection);
  return [{ name: 'Services with cluster IP, 64 in flight', value: rate, unit: '/s' }];
}
