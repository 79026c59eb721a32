// `npm run bench:dns`: our DNS server, Knot and, where Go is installed, CoreDNS under the same load in one run, the server on
// one core and dnsperf on the other. Then `portolan dns` with 100,000 services: its start, its memory, and changes.
// `BENCH_SECONDS` sets the length of each load, `--json FILE` keeps the figures.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { findCommand, installCounterparts } from '../scripts/counterparts.mjs';
import { measureManyServices, measureRealHome, measureWithoutIps } from './dns/many-services.ts';
import { measureServers } from './dns/servers-compared.ts';
import { measureSilentAuthority } from './dns/silent-authority.ts';
import { measureWorkers } from './dns/workers.ts';
import { type Figure, report } from './report.ts';

const sections = [
  measureServers,
  measureSilentAuthority,
  measureWorkers,
  measureManyServices,
  measureWithoutIps,
  measureRealHome,
];

installCounterparts();
if (!findCommand('dnsperf')) {
  execFileSync('apt-get', ['-qq', 'install', '-y', '--no-install-recommends', 'dnsperf'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
const directory = mkdtempSync(`${import.meta.dirname}/.bench-dns-`);
const figures: Figure[] = [];
try {
  for (const measure of sections) figures.push(...(await measure(directory)));
} finally {
  rmSync(directory, { recursive: true, force: true });
}
report('DNS', figures);
