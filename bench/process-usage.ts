// CPU time and memory of another process, as Linux counts them.

import { readFileSync } from 'node:fs';

const ticksPerSecond = 100;
/** The kernel says kB and means this many bytes. */
const kernelKb = 1024;

/** Of all its threads. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

export function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return (Number(/VmRSS:\s+(\d+) kB/.exec(status)![1]) * kernelKb) / 1e6;
}
