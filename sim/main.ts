// `npm run sim -- --schedules N --seed N`: random runs of whole clustersets. Names each seed that failed and what was
// wrong; `--seed N` alone replays one run in words; `--repeat` runs each twice and compares their traces; `--cases N`
// compares what N random services come to with what was predicted; `--sealed N` are N random lives of sealed exports; `--members N`
// makes sets of N clusters. Ends with a count, and with code 1 if one failed.

import { parseArgs } from 'node:util';
import { runCases } from './cases.ts';
import { runSchedule } from './schedule.ts';
import { runSealedSchedule } from './sealed-schedule.ts';

const { values } = parseArgs({
  options: {
    schedules: { type: 'string' },
    seed: { type: 'string' },
    cases: { type: 'string' },
    sealed: { type: 'string' },
    repeat: { type: 'boolean' },
    members: { type: 'string' },
  },
});
const members = values.members === undefined ? undefined : Number(values.members);
const firstSeed = Number(values.seed ?? 1);
const before = process.cpuUsage();

if (values.sealed !== undefined) await runSealed(Number(values.sealed));
else if (values.cases !== undefined) await compareCases(Number(values.cases));
else if (values.schedules === undefined) await replay(firstSeed);
else await runSchedules(Number(values.schedules));

async function runSchedules(count: number): Promise<void> {
  let failed = 0;
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
    const violations = await violationsOf(seed);
    const done = seed - firstSeed + 1;
    if (done % 100 === 0 && done < count) console.log(`${done} of ${count} done, ${failed} failed`);
    if (violations.length === 0) continue;
    failed += 1;
    console.log(
      `seed ${seed} failed; replay it with: npm run sim -- --seed ${seed}${members === undefined ? '' : ` --members ${members}`}`,
    );
    for (const violation of violations.slice(0, 10)) console.log(`  ${violation}`);
  }
  const { user, system } = process.cpuUsage(before);
  const cpuMs = (user + system) / 1000 / count;
  console.log(`${count - failed} passed, ${failed} failed; ${cpuMs.toFixed(1)} ms of one core a schedule`);
  process.exitCode = failed === 0 ? 0 : 1;
}

async function runSealed(count: number): Promise<void> {
  let failed = 0;
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
    const wrong = await runSealedSchedule({ seed });
    if (wrong.length > 0) failed += 1;
    for (const text of wrong) console.log(`seed ${seed}: ${text}`);
  }
  console.log(`${count - failed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

async function violationsOf(seed: number): Promise<readonly string[]> {
  const { violations, trace } = await runSchedule({ seed, members });
  if (!values.repeat) return violations;
  const again = await runSchedule({ seed, members });
  return again.trace === trace ? violations : [...violations, `a second run gave another trace`];
}

async function replay(seed: number): Promise<void> {
  const { violations, trace } = await runSchedule({ seed, members, onStep: (text) => console.log(text) });
  for (const violation of violations) console.log(`wrong: ${violation}`);
  console.log(`trace ${trace}, ${violations.length} wrong`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}

async function compareCases(count: number): Promise<void> {
  const { violations, conflicting } = await runCases({ count, seed: firstSeed });
  for (const violation of violations.slice(0, 20)) console.log(`wrong: ${violation}`);
  console.log(`${count} services, ${conflicting} in conflict, ${violations.length} wrong`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
