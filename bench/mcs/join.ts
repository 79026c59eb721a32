// A cluster joins a full set: its agent is a process of its own that knows both homes by their kubeconfigs. How long until
// it has imported everything, and what the process then holds.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Figure } from '../report.ts';
import { addCluster, type BenchSet, memberNamespace, pause, set, untilImported } from './clusterset.ts';

export async function measureJoin(running: BenchSet, services: number): Promise<Figure[]> {
  const { client, home, id } = await addCluster(running, 'joining');
  const startedMs = performance.now();
  const argv = [home.kubeconfig, running.broker.kubeconfig, set, id, memberNamespace(id)];
  const agent = fork(`${import.meta.dirname}/../mcs-agent.ts`, argv, { execArgv: ['--expose-gc'] });
  try {
    await untilImported(client, { services, slices: services });
    const joinedMs = performance.now() - startedMs;
    await pause(5_000);
    const { heapUsed, rss } = await memoryOf(agent);
    return [
      { name: `joining a set of ${services} services`, value: joinedMs / 1000, unit: 's' },
      {
        name: `memory of its agent: live objects, ${services} services imported`,
        value: heapUsed / 2 ** 20,
        unit: 'MB',
      },
      { name: 'memory of its agent: the whole process, run from TypeScript', value: rss / 2 ** 20, unit: 'MB' },
    ];
  } finally {
    agent.kill();
  }
}

async function memoryOf(agent: ChildProcess): Promise<NodeJS.MemoryUsage> {
  agent.send('memory');
  const [memory] = await once(agent, 'message');
  return memory as NodeJS.MemoryUsage;
}
