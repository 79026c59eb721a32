// Latency of names of our own while other names, asked beside them, lead to an authority that never answers.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure } from '../report.ts';
import { latencyMs, queryFile, warm } from './load.ts';
import { startOurs } from './servers.ts';

export async function measureSilentAuthority(directory: string): Promise<Figure[]> {
  const hole = createSocket('udp4').bind(0, '127.0.0.1');
  await once(hole, 'listening');
  const stubZones = [{ zone: 'hole.test', nameservers: [`127.0.0.1:${hole.address().port}`], sendsSource: true }];
  const server = await startOurs({ stubZones });
  const own = queryFile(directory, 'svc.clusterset.local', 'hits');
  const mixed = join(directory, 'queries-hole');
  const lines = readFileSync(own, 'utf8').trimEnd().split('\n');
  writeFileSync(mixed, `${lines.map((line, i) => (i % 50 === 0 ? `x${i}.hole.test A\n${line}` : line)).join('\n')}\n`);
  await warm({ directory, server, file: own });
  const alone = await latencyMs({ directory, server, file: own }, /clusterset/);
  const beside = await latencyMs({ directory, server, file: mixed }, /clusterset/);
  await server.stop();
  hole.close();
  const wanted = 'at most twice, or 0.5 ms';
  const isMet = beside <= Math.max(2 * alone, 0.5);
  return [
    { name: 'ours, own names: p99 at 10,000/s', value: alone, unit: 'ms' },
    { name: 'ours, own names beside a silent authority: p99', value: beside, unit: 'ms', wanted, isMet },
  ];
}
