// `npm run bench:mcs`: how long a change takes from one cluster to the last, what it moves, and what joining costs. First
// with the broker, all homes and all agents as processes of their own over TLS, each with its own account; then, as a measure
// of the rules and stores alone, all of them in this one process and so on one core. `--quick` runs each part for 3 x 100
// only, `--seconds N` and `--rounds N` shorten a part, `--only processes` (`3x100`, `big`, …) runs one. `faults` kills processes
// of the broker meanwhile, on SQLite and on an etcd of three members.

import { parseArgs } from 'node:util';
import { installCounterparts } from '../scripts/counterparts.mjs';
import { measureBigService } from './mcs/big-service.ts';
import { measureBrokerFaults } from './mcs/broker-faults.ts';
import { measureChanges } from './mcs/changes.ts';
import { fill, startSet, stopSet } from './mcs/clusterset.ts';
import { measureJoin } from './mcs/join.ts';
import { startProcesses } from './mcs/process-set.ts';
import { measureSteps } from './mcs/steps.ts';
import { type Figure, report } from './report.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'string' },
    quick: { type: 'boolean', default: false },
  },
});
const isAsked = (name: string) => values.only === undefined || values.only === name;
const seconds = Number(values.seconds ?? (values.quick ? 10 : 60));
const rounds = Number(values.rounds ?? (values.quick ? 20 : 100));
const changesPerSecond = 10;
const figures: Figure[] = [];

for (const clusters of isAsked('processes') ? (values.quick ? [3] : [3, 10]) : []) {
  const services = 100;
  const name = `${clusters}x${services}, processes over TLS`;
  const running = await startProcesses(clusters);
  try {
    await fill(running.clusters, services);
    figures.push(...(await measureSteps(running.clusters, { name, rounds })));
    figures.push(...(await measureChanges(running.clusters, { name, services, seconds, changesPerSecond })));
  } finally {
    await running.stop();
  }
}

const sets = [
  { clusters: 3, services: 100 },
  { clusters: 10, services: 100 },
  { clusters: 10, services: 1000 },
];
for (const { clusters, services } of values.quick ? sets.slice(0, 1) : sets) {
  const size = `${clusters}x${services}`;
  if (!isAsked(size)) continue;
  const name = `${size}, one process`;
  const isBig = services === 1000;
  const running = await startSet(clusters);
  await fill(running.clusters, services);
  if (!isBig) figures.push(...(await measureSteps(running.clusters, { name, rounds })));
  const p99MsWanted = isBig ? 250 : undefined;
  figures.push(...(await measureChanges(running.clusters, { name, services, seconds, changesPerSecond, p99MsWanted })));
  if (isBig) figures.push(...(await measureJoin(running, services)));
  await stopSet(running);
}
if (isAsked('faults')) {
  installCounterparts();
  figures.push(...(await measureBrokerFaults({ clusters: 3, services: 100, seconds, changesPerSecond })));
}
if (!values.quick && isAsked('big')) figures.push(...(await measureBigService()));
report('Multi-cluster services', figures);
process.exit(0);
