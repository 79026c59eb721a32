// `npm run sim -- --schedules N --seed N`: random runs of whole clustersets. Prints each seed that failed with its steps;
// `--seed N` alone replays one run in words. Ends with a count, and with code 1 if one failed.

import { parseArgs } from 'node:util';
import { runSchedule } from './schedule.ts';

const { values } = parseArgs({
  options: { schedules: { type: 'string' }, seed: { type: 'string' }, steps: { type: 'string' } },
});
const first = Number(values.seed ?? 1);
const count = values.schedules === undefined ? 1 : Number(values.schedules);
const isReplay = values.schedules === undefined;
const stepCount = values.steps === undefined ? undefined : Number(values.steps);
const before = process.cpuUsage();
let failed = 0;

for (let seed = first; seed < first + count; seed += 1) {
  const onStep = isReplay ? (text: string) => console.log(text) : undefined;
  const { violations, steps, trace } = await runSchedule({ seed, stepCount, onStep });
  if (isReplay) console.log(`${steps.at(-1)}\ntrace ${trace}`);
  if (violations.length === 0) continue;
  failed += 1;
  console.log(`seed ${seed} failed; replay it with: npm run sim -- --seed ${seed}`);
  for (const violation of violations.slice(0, 10)) console.log(`  ${violation}`);
}

const { user, system } = process.cpuUsage(before);
const cpuMs = (user + system) / 1000 / count;
console.log(`${count - failed} passed, ${failed} failed; ${cpuMs.toFixed(1)} ms of one core a schedule`);
process.exitCode = failed === 0 ? 0 : 1;
