// `npm run bench:api`: how fast a home answers and how much it holds, beside plain puts into a real etcd on the same
// disk. `--only start,creates,reads,watchers,memory` runs some of it, `--json FILE` keeps the figures.

import { mkdtempSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { installCounterparts } from '../scripts/counterparts.mjs';
import { measureCreates } from './api/creates.ts';
import { measureMemory } from './api/memory.ts';
import { measureReads, measureWatchers } from './api/reads.ts';
import { measureStart } from './api/start.ts';
import { type Figure, report } from './report.ts';

const sections = {
  start: measureStart,
  creates: measureCreates,
  reads: measureReads,
  watchers: measureWatchers,
  memory: measureMemory,
};

const { values } = parseArgs({ options: { only: { type: 'string' }, json: { type: 'string' } } });
const wanted = values.only?.split(',') ?? Object.keys(sections);
const unknown = wanted.filter((name) => !(name in sections));
if (unknown.length > 0) throw new Error(`bench: no section ${unknown}; there are ${Object.keys(sections)}`);

installCounterparts();
// Beside the checkout, not in /tmp, which may be memory: both sides must pay for the same disk.
const directory = mkdtempSync(`${import.meta.dirname}/.bench-`);
const figures: Figure[] = [];
try {
  for (const [name, measure] of Object.entries(sections)) {
    if (wanted.includes(name)) figures.push(...(await measure(directory)));
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
report('A home for facts', figures);
