// Memory of a home with 100,000 Services and the EndpointSlices that it makes for them.

import { connect, startApi } from '../../test/support/api-process.ts';
import { residentMb } from '../process-usage.ts';
import type { Figure } from '../report.ts';
import { inFlight } from './load.ts';
import { createNamespace, creator, untilEachHasSlices } from './objects.ts';
import { untilQuiet } from './start.ts';

const count = 100_000;

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
    await untilEachHasSlices(connection);
    const allMs = performance.now() - startedAt;
    await untilQuiet(api);
    connection.close();
    return [
      { name: '100,000 Services written', value: (count / writtenMs) * 1000, unit: '/s' },
      { name: '  until each had its EndpointSlice', value: (count / allMs) * 1000, unit: '/s' },
      memory('just written', residentMb(api.pid)),
    ];
  } finally {
    await api.stop();
  }
}

async function restarted(data: string): Promise<Figure[]> {
  const api = await startApi({ data });
  try {
    await untilQuiet(api);
    return [
      memory('restarted', residentMb(api.pid)),
      {
        ...{ name: 'start-up with 100,000 Services', value: api.readyMs, unit: 'ms' },
        ...{ wanted: 'under 2,000 ms', isMet: api.readyMs < 2_000 },
      },
    ];
  } finally {
    await api.stop();
  }
}

function memory(when: string, value: number): Figure {
  const name = `memory, 100,000 Services, ${when}`;
  return { name, value, unit: 'MB', wanted: 'under 500 MB', isMet: value < 500 };
}
