// `npm run check:truth [-- --minutes 60 --seed N --json FILE --only "FAULT,FAULT"]`: the demo under random faults, in which every
// answer of status, doctor, dashboard, conditions and DNS is compared with what was done. Ends with 1 on a violation.

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { allFaults, type Fault, nameOf } from './truth/faults.ts';
import { isValid, reportText, rowsOf } from './truth/report.ts';
import { oneByOne, runTruth } from './truth/run.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    json: { type: 'string' },
    /** Names of faults, such as `dns west frozen`. */
    only: { type: 'string' },
  },
});
const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
if (!(minutes > 0)) throw new Error(`--minutes ${values.minutes}: expected a number above 0`);
if (!Number.isSafeInteger(seed)) throw new Error(`--seed ${values.seed}: expected a whole number`);
const only = values.only?.split(',').map((name): Fault => {
  const fault = allFaults.find((one) => nameOf(one) === name.trim());
  if (fault === undefined) throw new Error(`--only: no fault ${name}, there are ${allFaults.map(nameOf).join(', ')}`);
  return fault;
});

console.log(`seed ${seed}, ${minutes} minutes`);
const result = await runTruth({
  seed,
  lastsMs: minutes * 60_000,
  say: console.log,
  ...(only ? { turns: oneByOne(only) } : {}),
});
console.log('');
for (const line of reportText(result)) console.log(line);
if (values.json !== undefined) {
  const { answers, violations, leftOut, stallsMs, model } = result;
  const document = {
    seed,
    minutes,
    answers,
    unjudged: model.unjudged,
    faults: rowsOf(result),
    violations,
    leftOut,
    stallsMs,
  };
  writeFileSync(values.json, `${JSON.stringify(document, null, 2)}\n`);
}
process.exitCode = result.violations.length === 0 && isValid(result) ? 0 : 1;
