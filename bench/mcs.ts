// `npm run bench:mcs`: how long a change takes from one cluster to the last, what it moves, and what joining costs. The
// broker, all homes (on disk, as they run) and all agents share this one process and so one core; `--seconds N` shortens
// the minute of changes, `--only 3x100` (or `big`) runs one part.

import { parseArgs } from 'node:util';
import { measureBigService } from './mcs/big-service.ts';
import { measureChanges } from './mcs/changes.ts';
import { fill, startSet, stopSet } from './mcs/clusterset.ts';
import { measureJoin } from './mcs/join.ts';
import { type Figure, report } from './report.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, only: { type: 'string' }, json: { type: 'string' } },
});
const isAsked = (name: string) => values.only === undefined || values.only === name;
const seconds = Number(values.seconds ?? 60);
const figures: Figure[] = [];

for (const { clusters, services } of [
  { clusters: 3, services: 100 },
  { clusters: 10, services: 100 },
  { clusters: 10, services: 1000 },
]) {
  const name = `${clusters}x${services}`;
  if (!isAsked(name)) continue;
  const isBig = services === 1000;
  const running = await startSet(clusters);
  await fill(running, services);
  const p99MsWanted = isBig ? 250 : undefined;
  figures.push(...(await measureChanges(running, { name, services, seconds, changesPerSecond: 10, p99MsWanted })));
  if (isBig) figures.push(...(await measureJoin(running, services)));
  await stopSet(running);
}
if (isAsked('big')) figures.push(...(await measureBigService()));
report('Multi-cluster services', figures);
process.exit(0);
