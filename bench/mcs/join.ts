// A cluster joins a full set: its agent is a process of its own that knows both homes by their kubeconfigs. How long until
// it has imported everything, and what the process then holds.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Figure } from '../report.ts';
import { addCluster, type BenchSet, memberNamespace, pause, set, untilImported } from './clusterset.ts';

export async function measureJoin(running: BenchSet, services: number): Promise<Figure[]> {
  const { client, home, id } = await addCluster(running, 'joining');
  const startedMs = performance.now();
  const argv = [home.kubeconfig, running.broker.kubeconfig, set, id, memberNamespace(id)];
  const agent = spawn(process.execPath, [`${import.meta.dirname}/../mcs-agent.ts`, ...argv], { stdio: 'inherit' });
  try {
    await untilImported(client, { services, slices: services });
    const joinedMs = performance.now() - startedMs;
    await pause(5_000);
    return [
      { name: `joining a set of ${services} services`, value: joinedMs / 1000, unit: 's' },
      { name: `memory of its agent, ${services} services imported`, value: residentMb(agent.pid!), unit: 'MB' },
    ];
  } finally {
    agent.kill();
  }
}

function residentMb(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kilobytes) / 1024;
}
