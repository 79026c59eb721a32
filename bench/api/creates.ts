// Durable creates beside plain puts into etcd. Both sides take turns in short rounds, because the disk's speed drifts;
// their medians are compared.

import { type Connection, connect, startApi } from '../../test/support/api-process.ts';
import type { Figure } from '../report.ts';
import { type Etcd, startEtcd } from './etcd.ts';
import { inFlight, median, perSecond } from './load.ts';
import { createNamespace, creator, untilEachHasSlices } from './objects.ts';

const width = 64;
const rounds = 7;
const serviceRounds = 5;
const roundMs = 1500;
const warmCount = 3000;

export async function measureCreates(directory: string): Promise<Figure[]> {
  const etcd = await startEtcd(`${directory}/etcd`);
  const api = await startApi({ data: `${directory}/creates` });
  const args = ['--etcd', etcd.url, '--etcd-prefix', '/bench/', '--snapshots', 'none'];
  const onEtcd = await startApi({ data: `${directory}/creates-etcd`, args });
  try {
    const [connection, etcdConnection] = [await connect(api.kubeconfig), await connect(onEtcd.kubeconfig)];
    for (const each of [connection, etcdConnection]) await createNamespace(each);
    const figures = [...(await plainObjects(connection, etcdConnection, etcd)), ...(await services(connection, etcd))];
    for (const each of [connection, etcdConnection]) each.close();
    return figures;
  } finally {
    await onEtcd.stop();
    await api.stop();
    await etcd.stop();
  }
}

async function plainObjects(connection: Connection, onEtcd: Connection, etcd: Etcd): Promise<Figure[]> {
  for (const each of [connection, onEtcd]) await inFlight(width, warmCount, creator(each, 'ConfigMap', 'warm'));
  for (const put of [etcd.put, etcd.quickPut]) await inFlight(width, warmCount, put);
  const oneByOne = await perSecond(1, 3000, creator(connection, 'ConfigMap', 'one'));
  const rates = { creates: [] as number[], inEtcd: [] as number[], puts: [] as number[], quick: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    rates.puts.push(await perSecond(width, roundMs, etcd.put));
    rates.quick.push(await perSecond(width, roundMs, etcd.quickPut));
    rates.creates.push(await perSecond(width, roundMs, creator(connection, 'ConfigMap', `many-${round}`)));
    rates.inEtcd.push(await perSecond(width, roundMs, creator(onEtcd, 'ConfigMap', `many-${round}`)));
  }
  const [creates, puts] = [median(rates.creates), median(rates.puts)];
  const [inEtcd, quick] = [median(rates.inEtcd), median(rates.quick)];
  const quicker = Math.max(puts, quick);
  return [
    { name: 'durable creates, one by one', value: oneByOne, unit: '/s' },
    { name: 'plain puts into etcd by a library on grpc-js, 64 in flight', value: puts, unit: '/s' },
    { name: 'plain puts into etcd over node:http2, 64 in flight', value: quick, unit: '/s' },
    { name: 'durable creates, 64 in flight', value: creates, unit: '/s' },
    forEachPut(creates / quicker, 1.3),
    { name: 'creates of a home on etcd, 64 in flight', value: inEtcd, unit: '/s' },
    forEachPut(inEtcd / quicker, 0.7),
  ];
}

function forEachPut(value: number, wanted: number): Figure {
  const name = '  for each of the quicker puts';
  return { name, value, unit: 'times', wanted: `at least ${wanted}`, isMet: value >= wanted };
}

/** The kind that costs most: an address is taken with it, and a controller makes its endpoints. */
async function services(connection: Connection, etcd: Etcd): Promise<Figure[]> {
  const create = creator(connection, 'Service', 'many');
  await inFlight(width, warmCount, create);
  await untilEachHasSlices(connection);
  const rates = { puts: [] as number[], taken: [] as number[], whole: [] as number[] };
  for (let round = 0; round < serviceRounds; round += 1) {
    rates.puts.push(await perSecond(width, roundMs, etcd.quickPut));
    const startedAt = performance.now();
    const rate = await perSecond(width, roundMs, create);
    const count = (rate * (performance.now() - startedAt)) / 1000;
    await untilEachHasSlices(connection);
    rates.taken.push(rate);
    rates.whole.push((count / (performance.now() - startedAt)) * 1000);
  }
  const [puts, taken] = [median(rates.puts), median(rates.taken)];
  return [
    { name: 'Services with cluster IP, 64 in flight', value: taken, unit: '/s' },
    forEachPut(taken / puts, 0.8),
    { name: '  until each has its EndpointSlice', value: median(rates.whole), unit: '/s' },
  ];
}
