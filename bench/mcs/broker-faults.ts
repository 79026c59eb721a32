// The whole flow while its broker loses a process: endpoints change in exporting clusters, one after the other, until they
// stand in the last one, and something is written to the broker itself all the time. On SQLite the broker is killed and
// started again; on etcd the process that serves is killed, and later the leader of etcd.

import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../../src/kube/client/client.ts';
import { configMapType } from '../../src/kube/objects/config-map.ts';
import { EtcdBroker, type LosingBroker, SqliteBroker } from '../../test/support/brokers.ts';
import { type Figure, percentile } from '../report.ts';
import { measureChanges } from './changes.ts';
import { fill, set } from './clusterset.ts';
import { startProcesses } from './process-set.ts';

export interface BrokerFaultsOptions {
  readonly clusters: number;
  readonly services: number;
  readonly seconds: number;
  readonly changesPerSecond: number;
}

const brokers = {
  sqlite: { name: 'broker on SQLite, killed and started', start: () => new SqliteBroker() },
  etcd: { name: 'broker on etcd, one process and one member killed', start: () => new EtcdBroker() },
};

export async function measureBrokerFaults(
  options: BrokerFaultsOptions,
  kinds: readonly (keyof typeof brokers)[] = ['sqlite', 'etcd'],
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const kind of kinds) figures.push(...(await measureOne(brokers[kind].name, brokers[kind].start(), options)));
  return figures;
}

async function measureOne(name: string, broker: LosingBroker, options: BrokerFaultsOptions): Promise<Figure[]> {
  const { clusters, services, seconds, changesPerSecond } = options;
  const running = await startProcesses(clusters, (directory) => broker.start(directory));
  try {
    await fill(running.clusters, services);
    const calmly = { services, seconds: seconds / 3, changesPerSecond, network: 201 };
    const calm = await measureChanges(running.clusters, { name: `${name}: calm`, ...calmly });
    const writes = startWriting(running.broker.client);
    const lost = loseInTurn(broker, seconds);
    const changes = await measureChanges(running.clusters, { name, services, seconds, changesPerSecond, until: lost });
    const apiMs = await lost;
    return [
      ...[...calm, ...changes].filter((figure) => !figure.name.includes("its own home's")),
      ...(await writes.stop()).map((figure) => ({ ...figure, name: `${name}: ${figure.name}` })),
      { name: `${name}: from the kill until a process serves`, value: apiMs, unit: 'ms' },
    ];
  } finally {
    await broker.stop();
    await running.stop();
  }
}

async function loseInTurn(broker: LosingBroker, seconds: number): Promise<number> {
  await pause((seconds / 6) * 1000);
  const startedMs = performance.now();
  await broker.loseApi();
  const apiMs = performance.now() - startedMs;
  await pause((seconds / 4) * 1000);
  await broker.loseMember();
  await pause((seconds / 3) * 1000);
  return apiMs;
}

const writeEveryMs = 100;
const writeMsMax = 2_000;

/** One object is written again and again; what fails is counted, and how long none succeeded. */
function startWriting(client: Client) {
  const metadata = { name: 'written', namespace: set };
  const tookMs: number[] = [];
  let [failed, longestMs, isStopped] = [0, 0, false];
  const write = async () => {
    await client.create(configMapType, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: {} });
    let succeededMs = performance.now();
    for (let count = 0; !isStopped; count += 1) {
      const startedMs = performance.now();
      const patch = { kind: 'merge', body: { data: { count: `${count}` } } } as const;
      try {
        await client.patch(configMapType, metadata, patch, { signal: AbortSignal.timeout(writeMsMax) });
        tookMs.push(performance.now() - startedMs);
        longestMs = Math.max(longestMs, performance.now() - succeededMs);
        succeededMs = performance.now();
      } catch {
        failed += 1;
      }
      await pause(writeEveryMs);
    }
  };
  const written = write();
  return {
    stop: async (): Promise<Figure[]> => {
      isStopped = true;
      await written;
      const sortedMs = tookMs.toSorted((one, other) => one - other);
      return [
        { name: 'writes to the broker', value: tookMs.length + failed, unit: '' },
        { name: 'of them failed', value: failed, unit: '' },
        { name: 'writes to the broker, p99', value: percentile(sortedMs, 0.99), unit: 'ms' },
        { name: 'longest time without a write that succeeded', value: longestMs, unit: 'ms' },
      ];
    },
  };
}
