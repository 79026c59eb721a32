// `npm run check:choice [-- --connections 20000 --only TEXT --random 1000000]`: every case of the table by names, a real kernel, a real
// Envoy and real gRPC clients, with the same endpoints and the same parts; then random cases of the rule against the model. Prints one
// line for each case that is not as wanted, and the largest difference of each plane; ends with 1 if one is above two points. Needs root.

import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { readChoiceCases } from '../src/clusterset/rules/choice/testing/choice-case.ts';
import { placeCase } from './choice/objects.ts';
import { compare, type Plane, planesOf } from './choice/planes.ts';
import { Stage } from './choice/stage.ts';
import { pathOf } from './support/counterparts.ts';
import { namespacesMissing } from './support/namespaces.ts';

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '20000' },
    only: { type: 'string', default: '' },
    random: { type: 'string', default: '1000000' },
  },
});
const count = Number(values.connections);
if (!(count >= 1000)) throw new Error(`--connections ${values.connections}: want at least 1000`);
const why = namespacesMissing() || (pathOf('envoy') === undefined ? ' (needs envoy)' : '');
if (why !== '') throw new Error(`check:choice${why}`);
const pointsMax = 2;

const cases = readChoiceCases()
  .map(placeCase)
  .filter(({ title }) => title.includes(values.only));
const stage = new Stage();
let bad = 0;

async function runAll(plane: Plane): Promise<void> {
  const asked = cases.filter((each) => plane.knows?.(each) !== false);
  let [largest, where] = [0, ''];
  for (const [index, placed] of asked.entries()) {
    if (index > 0 && index % 20 === 0)
      console.log(`${plane.name}: ${index} cases, so far ${largest.toFixed(2)} points at most`);
    const counts = await plane.ask(placed, count);
    const { wrong, points } = compare(placed, counts, plane);
    if (points > largest) [largest, where] = [points, placed.title];
    if (wrong.length === 0 && points < pointsMax) continue;
    bad += 1;
    console.log(
      `${plane.name}, ${placed.title}: ${points.toFixed(2)} points; ${wrong.join(', ')} ${JSON.stringify(counts)}`,
    );
  }
  console.log(`${plane.name}: ${asked.length} cases, largest difference ${largest.toFixed(2)} points (${where})`);
}

try {
  await stage.start(cases);
  const planes = planesOf(stage, pathOf('grpcio') === undefined ? ['javascript'] : ['javascript', 'python']);
  await Promise.all(planes.map(runAll));
} finally {
  await stage.stop();
}

const tests = ['src/clusterset/rules/choice/shares.test.ts', '-t', 'random groups'];
const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'fast', ...tests];
const env = { ...process.env, SHARE_CASES: values.random };
const { status } = spawnSync(process.execPath, vitest, { env, encoding: 'utf8' });
console.log(`the rule against the model, ${values.random} random cases: ${status === 0 ? 'all alike' : 'NOT ALIKE'}`);
if (status !== 0) bad += 1;
process.exitCode = bad === 0 ? 0 : 1;
