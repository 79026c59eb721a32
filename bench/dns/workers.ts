// Two workers against one, on the same core: the cost of sharing the port, and how evenly the kernel spreads queries.

import type { Figure } from '../report.ts';
import { fullLoad, queryFile, warm } from './load.ts';
import { startOurs } from './servers.ts';

// Each client is a socket: the kernel chooses a worker by it.
const clients = 200;

export async function measureWorkers(directory: string): Promise<Figure[]> {
  const one = await measured(directory, 1);
  const two = await measured(directory, 2);
  const ratio = two.cpuMicroseconds / one.cpuMicroseconds;
  const least = 100 * Math.min(...two.shares);
  return [
    { name: 'one worker: CPU per query', value: one.cpuMicroseconds, unit: 'µs' },
    {
      name: 'two workers against one, CPU per query',
      value: ratio,
      unit: '',
      wanted: 'at most 1.15',
      isMet: ratio <= 1.15,
    },
    { name: 'smaller share of two workers', value: least, unit: '%', wanted: '35 to 65 %', isMet: least >= 35 },
  ];
}

/** CPU of one query, and the share of all queries that each worker answered. */
async function measured(
  directory: string,
  workers: number,
): Promise<{ readonly cpuMicroseconds: number; readonly shares: readonly number[] }> {
  const server = await startOurs({ workers });
  const load = { directory, server, file: queryFile(directory, 'svc.clusterset.local', 'mixed') };
  const answered = async () => (await server.ask({ ask: 'shares' }))['counts'] as number[];
  await warm(load, { clients });
  const before = await answered();
  const { cpuMicroseconds } = await fullLoad(load, { clients });
  const counts = (await answered()).map((count, i) => count - before[i]!);
  const total = counts.reduce((sum, count) => sum + count, 0);
  await server.stop();
  return { cpuMicroseconds, shares: counts.map((count) => count / total) };
}
