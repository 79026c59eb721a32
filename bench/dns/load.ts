// Load by dnsperf on the core beside the server's: files of queries, the rate and CPU of a full load, and latency at a
// fixed rate.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from '../../scripts/counterparts.mjs';
import { cpuSeconds } from '../process-usage.ts';
import { percentile } from '../report.ts';
import { names } from './servers.ts';

const core = '1';
const seconds = Number(process.env['BENCH_SECONDS'] ?? 8);

export interface Load {
  readonly directory: string;
  readonly server: { readonly port: number; readonly pid: number };
  /** Queries, as `queryFile` writes them. */
  readonly file: string;
  /** `code:hex` of an EDNS option. */
  readonly option?: string;
}

/**
 * `hits` are names that exist, `misses` names that are asked for once each; in `mixed` one query in ten is for a name that
 * does not exist.
 */
export function queryFile(directory: string, zone: string, kind: 'mixed' | 'hits' | 'misses'): string {
  const path = join(directory, `queries-${kind}-${zone}`);
  const lines: string[] = [];
  if (kind === 'misses') {
    for (let i = 0; i < 1_000_000; i++) lines.push(`n${i}.${zone} A`);
  } else {
    for (let i = 0; i < 20_000; i++) {
      const n = (i * 7919) % names;
      lines.push(`${kind === 'mixed' && i % 10 === 9 ? 'no' : 'svc'}-${n}.ns-${n % 100}.${zone} A`);
    }
  }
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

export async function warm(load: Load, { seconds = 2, clients = 1 } = {}): Promise<void> {
  await dnsperf(load, ['-l', String(seconds), '-c', String(clients)]);
}

export interface FullLoad {
  readonly perSecond: number;
  readonly lost: number;
  /** CPU of the server for each query, in microseconds. */
  readonly cpuMicroseconds: number;
}

/** As many queries as the server answers, with at most `inFlight` of them unanswered. */
export async function fullLoad(load: Load, { clients = 8, inFlight = 400 } = {}): Promise<FullLoad> {
  const before = cpuSeconds(load.server.pid);
  const output = await dnsperf(load, ['-l', String(seconds), '-c', String(clients), '-q', String(inFlight)]);
  const used = cpuSeconds(load.server.pid) - before;
  return {
    perSecond: Number(/Queries per second:\s+([\d.]+)/.exec(output)?.[1]),
    lost: Number(/Queries lost:\s+(\d+)/.exec(output)?.[1]),
    cpuMicroseconds: (1e6 * used) / Number(/Queries completed:\s+(\d+)/.exec(output)?.[1]),
  };
}

/** The p99 at 10,000 queries a second, of queries that match `only`. dnsperf in verbose mode prints each query's time. */
export async function latencyMs(load: Load, only = /./): Promise<number> {
  const output = await dnsperf(load, ['-l', '5', '-Q', '10000', '-v']);
  const times = [...output.matchAll(/^> \S+ .* ([\d.]+)$/gm)]
    .filter((match) => only.test(match[0]))
    .map((match) => 1000 * Number(match[1]))
    .sort((a, b) => a - b);
  return percentile(times, 0.99);
}

async function dnsperf({ directory, server, file, option }: Load, args: readonly string[]): Promise<string> {
  const where = ['-s', '127.0.0.1', '-p', String(server.port), '-d', file];
  const edns = option ? ['-E', option] : [];
  // Into a file: reading a line for each query here would take turns from the server, and from dnsperf.
  const outputFile = join(directory, 'dnsperf.txt');
  const output = openSync(outputFile, 'w');
  const child = spawn('taskset', ['-c', core, findCommand('dnsperf')!, ...where, ...edns, ...args], {
    stdio: ['ignore', output, 'ignore'],
  });
  await once(child, 'close');
  closeSync(output);
  return readFileSync(outputFile, 'utf8');
}
