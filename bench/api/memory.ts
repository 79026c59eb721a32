// What a home takes with 100,000 Services and the EndpointSlices that it makes for them.

import { type Connection, connect, startApi } from '../../test/support/api-process.ts';
import type { Figure } from '../report.ts';
import { inFlight, sleep } from './load.ts';
import { createNamespace, creator } from './objects.ts';
import { residentMb } from './start.ts';

const count = 100_000;
const slices = '/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices';

export async function measureMemory(directory: string): Promise<Figure[]> {
  const data = `${directory}/large`;
  return [...(await written(data)), ...(await restarted(data))];
}

async function written(data: string): Promise<Figure[]> {
  const api = await startApi({ data });
  try {
    const connection = await connect(api.kubeconfig);
    await createNamespace(connection);
    const startedAt = performance.now();
    await inFlight(64, count, creator(connection, 'Service', 'service'));
    const writtenMs = performance.now() - startedAt;
    await untilAllHaveSlices(connection);
    const allMs = performance.now() - startedAt;
    await sleep(2000);
    connection.close();
    return [
      { name: '100,000 Services written', value: (count / writtenMs) * 1000, unit: '/s' },
      { name: '  until each had its EndpointSlice', value: (count / allMs) * 1000, unit: '/s' },
      memory('just written', residentMb(api)),
    ];
  } finally {
    await api.stop();
  }
}

async function restarted(data: string): Promise<Figure[]> {
  const api = await startApi({ data });
  try {
    await sleep(5000);
    return [
      memory('restarted', residentMb(api)),
      { name: 'start-up with 100,000 Services', value: api.readyMs, unit: 'ms' },
    ];
  } finally {
    await api.stop();
  }
}

function memory(when: string, value: number): Figure {
  const name = `memory, 100,000 Services, ${when}`;
  return { name, value, unit: 'MB', wanted: 'under 600 MB', isMet: value < 600 };
}

async function untilAllHaveSlices(connection: Connection): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    const { body } = await connection.request('GET', `${slices}?limit=1`);
    const { items, metadata } = JSON.parse(body.toString());
    if (items.length + (metadata.remainingItemCount ?? 0) >= count) return;
    await sleep(200);
  }
  throw new Error('bench: the EndpointSlices of 100,000 Services were not there after two minutes');
}
