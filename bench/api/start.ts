// How soon a home answers, and what it takes when nobody asks anything of it.

import { type ApiProcess, startApi } from '../../test/support/api-process.ts';
import { cpuSeconds, residentMb } from '../process-usage.ts';
import type { Figure } from '../report.ts';
import { median, sleep } from './load.ts';

export async function measureStart(directory: string): Promise<Figure[]> {
  const data = `${directory}/start`;
  const first = await startApi({ data });
  await first.stop();
  const readyMs: number[] = [];
  const emptyMb: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const api = await startApi({ data });
    readyMs.push(api.readyMs);
    await untilQuiet(api);
    emptyMb.push(residentMb(api.pid));
    await api.stop();
  }
  const startMs = median(readyMs);
  const restingMb = median(emptyMb);
  return [
    { name: 'start-up on an empty folder', value: first.readyMs, unit: 'ms' },
    { name: 'start-up', value: startMs, unit: 'ms', wanted: 'under 1,000 ms', isMet: startMs < 1000 },
    { name: 'memory, empty', value: restingMb, unit: 'MB', wanted: 'under 120 MB', isMet: restingMb < 120 },
  ];
}

/** It has stopped doing anything: what it had to do after its start, or after the last request, is done. */
export async function untilQuiet({ pid }: ApiProcess): Promise<void> {
  for (let tries = 0, before = cpuSeconds(pid); tries < 60; tries += 1) {
    await sleep(1000);
    const now = cpuSeconds(pid);
    if (now - before < 0.05) return;
    before = now;
  }
}
