// `npm run bench:demo`: how long a newcomer waits for the demo, by the clock on the wall, and what it costs.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { cpuSeconds, residentMb } from './process-usage.ts';
import { type Figure, percentile, report } from './report.ts';

const portolan = `${import.meta.dirname}/../bin/portolan`;
const rounds = 3;
const wallSeconds: number[] = [];
const cpus: number[] = [];
const megabytes: number[] = [];

for (let round = 0; round < rounds; round++) {
  const directory = mkdtempSync(`${import.meta.dirname}/.bench-demo-`);
  const startedMs = performance.now();
  const child = spawn(portolan, ['demo', '--dir', directory], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) if (line === 'ready') break;
  wallSeconds.push((performance.now() - startedMs) / 1000);
  cpus.push(cpuSeconds(child.pid!));
  megabytes.push(await residentMegabytes(child.pid!, directory));
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  rmSync(directory, { recursive: true, force: true });
}

const middle = (values: number[]) =>
  percentile(
    values.sort((a, b) => a - b),
    0.5,
  );
const worst = Math.max(...wallSeconds);
const figures: Figure[] = [
  { name: 'from start to ready, median of three', value: middle(wallSeconds), unit: 's' },
  { name: 'from start to ready, slowest', value: worst, unit: 's', wanted: 'within 10 s', isMet: worst < 10 },
  { name: 'CPU until ready, median', value: middle(cpus), unit: 's' },
  {
    name: 'memory with a page open, largest',
    value: Math.max(...megabytes),
    unit: 'MB',
    wanted: 'under 350 MB',
    isMet: Math.max(...megabytes) < 350,
  },
];
report('Demo', figures);

/** With a page of the dashboard open, which makes the dashboard watch everything. */
async function residentMegabytes(pid: number, directory: string): Promise<number> {
  const { dashboard, token } = JSON.parse(readFileSync(`${directory}/demo.json`, 'utf8'));
  const page = new AbortController();
  const response = await fetch(`${dashboard}/api/stream`, {
    headers: { authorization: `Bearer ${token}` },
    signal: page.signal,
  });
  const reader = response.body!.getReader();
  const endMs = performance.now() + 5_000;
  while (performance.now() < endMs) await reader.read();
  const megabytes = residentMb(pid);
  page.abort();
  return megabytes;
}
