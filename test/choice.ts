// `npm run check:choice`: every case of the table by names, a real kernel, a real Envoy and real gRPC clients, with the same endpoints
// and the same parts; then random cases of the rule against the model. Prints each case that is not as wanted and a table of
// verdicts; ends with 1 if a part is more than two points away. Needs root. Options:
//   --connections 20000   for each case and plane
//   --planes kernel,Envoy only these; --only TEXT: cases with it in their title; --cases 1-40: by their number in the table
//   --json FILE           what was found, after each case; --resume: leaves out what FILE says was as wanted with as many connections
//   --random 1000000      cases of the rule against the model

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readChoiceCases } from '../src/clusterset/rules/choice/testing/choice-case.ts';
import { type PlacedCase, placeCase } from './choice/objects.ts';
import { type Counts, compare, type PlaneName, planeNames, planeOf } from './choice/planes.ts';
import { Stage } from './choice/stage.ts';
import { pathOf } from './support/counterparts.ts';
import { namespacesMissing } from './support/namespaces.ts';

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '20000' },
    planes: { type: 'string', default: planeNames.join(',') },
    only: { type: 'string', default: '' },
    cases: { type: 'string', default: '1-10000' },
    json: { type: 'string' },
    resume: { type: 'boolean', default: false },
    random: { type: 'string', default: '1000000' },
  },
});
const count = Number(values.connections);
if (!(count >= 1000)) throw new Error(`--connections ${values.connections}: want at least 1000`);
const asked = planeNames.filter((name) => values.planes.split(',').includes(name));
if (asked.length !== values.planes.split(',').length)
  throw new Error(`--planes ${values.planes}: want some of ${planeNames.join(', ')}`);
const [, from, to] = /^(\d+)-(\d+)$/.exec(values.cases) ?? [];
if (from === undefined) throw new Error(`--cases ${values.cases}: want two numbers, as in 1-40`);
const why = [
  namespacesMissing(),
  pathOf('envoy') === undefined ? ' (needs envoy)' : '',
  asked.includes('grpcio') && pathOf('grpcio') === undefined ? ' (needs grpcio, or --planes without it)' : '',
].find((each) => each !== '');
if (why !== undefined) throw new Error(`check:choice${why}`);
const pointsMax = 2;
const progressMs = 60_000;

interface Result {
  readonly plane: PlaneName;
  readonly title: string;
  readonly connections: number;
  readonly points: number;
  readonly wrong: readonly string[];
  readonly counts: Counts;
}

const isFine = ({ wrong, points }: Result) => wrong.length === 0 && points < pointsMax;
const cases = readChoiceCases()
  .map(placeCase)
  .filter(({ title, index }) => title.includes(values.only) && index + 1 >= Number(from) && index < Number(to));
const results: Result[] = [];
if (values.resume && values.json !== undefined && existsSync(values.json)) {
  const before = (JSON.parse(readFileSync(values.json, 'utf8')) as { results: Result[] }).results;
  results.push(...before.filter((each) => isFine(each) && each.connections === count));
}

function isDone(name: PlaneName, { title }: PlacedCase): boolean {
  return results.some((each) => each.plane === name && each.title === title);
}

async function runAll(name: PlaneName, stage: Stage): Promise<void> {
  const plane = planeOf(name, stage);
  const left = cases.filter((each) => plane.knows?.(each) !== false && !isDone(name, each));
  let toldMs = performance.now();
  for (const [index, placed] of left.entries()) {
    const counts = await plane.ask(placed, count);
    const result: Result = {
      ...{ plane: name, title: placed.title, connections: count, counts },
      ...compare(placed, counts, plane),
    };
    results.push(result);
    if (values.json !== undefined) writeFileSync(values.json, JSON.stringify({ results }));
    const { points, wrong } = result;
    if (!isFine(result))
      console.log(
        `${name}, ${placed.title}: ${points.toFixed(2)} points; ${wrong.join(', ')} ${JSON.stringify(counts)}`,
      );
    if (performance.now() - toldMs < progressMs) continue;
    toldMs = performance.now();
    console.log(`${clock()} ${name}: ${index + 1} of ${left.length} cases`);
  }
  console.log(`${clock()} ${name}: all ${left.length} cases`);
}

const startMs = performance.now();

function clock(): string {
  const s = Math.round((performance.now() - startMs) / 1000);
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

const stage = new Stage();
try {
  await stage.start(cases);
  await Promise.all(asked.map((name) => runAll(name, stage)));
} finally {
  await stage.stop();
}

console.log(`\nplane    cases  wrong  largest difference, points of 100, at ${count} connections`);
for (const name of asked) {
  const of = results.filter((each) => each.plane === name).sort((one, other) => other.points - one.points);
  const bad = of.filter((each) => !isFine(each)).length;
  const largest = of[0] === undefined ? '' : `${of[0].points.toFixed(2)} (${of[0].title})`;
  console.log(`${name.padEnd(9)}${String(of.length).padEnd(7)}${String(bad).padEnd(7)}${largest}`);
}

const tests = ['src/clusterset/rules/choice/shares.test.ts', '-t', 'random groups'];
const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'fast', ...tests];
const env = { ...process.env, SHARE_CASES: values.random };
const isAlike = values.random === '0' || spawnSync(process.execPath, vitest, { env, encoding: 'utf8' }).status === 0;
console.log(`the rule against the model, ${values.random} random cases: ${isAlike ? 'all alike' : 'NOT ALIKE'}`);
process.exitCode = isAlike && results.length > 0 && results.every(isFine) ? 0 : 1;
