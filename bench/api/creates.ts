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
  const etcd = await startEtcd(`${directory}/etcd`);
  const api = await startApi({ data: `${directory}/creates` });
  const args = ['--etcd', etcd.url, '--etcd-prefix', '/bench/', '--snapshots', 'none'];
  const onEtcd = await startApi({ data: `${directory}/creates-etcd`, args });
  try {
    const [connection, etcdConnection] = [await connect(api.kubeconfig), await connect(onEtcd.kubeconfig)];
    for (const each of [connection, etcdConnection]) await createNamespace(each);
    const figures = [...(await plainObjects(connection, etcdConnection, etcd)), ...(await services(connection))];
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
  const wantedOnEtcd = '0.7 times the quicker puts';
  const wanted = "3 times etcd's puts";
  return [
    { name: 'durable creates, one by one', value: oneByOne, unit: '/s' },
    { name: 'plain puts into etcd, 64 in flight', value: puts, unit: '/s' },
    { name: 'durable creates, 64 in flight', value: creates, unit: '/s', wanted, isMet: creates >= 3 * puts },
    { name: '  for each put of etcd', value: creates / puts, unit: 'times' },
    { name: 'plain puts over node:http2, 64 in flight', value: quick, unit: '/s' },
    {
      ...{ name: 'creates of a home on etcd, 64 in flight', value: inEtcd, unit: '/s', wanted: wantedOnEtcd },
      isMet: inEtcd >= 0.7 * Math.max(puts, quick),
    },
    { name: '  for each such put', value: inEtcd / Math.max(puts, quick), unit: 'times' },
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
