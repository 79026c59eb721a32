// `npm run check:verdicts -- --minutes 30`: endpoints that stop answering in three ways, then a long run in which all of them answer and
// nothing may be left. Prints a table; ends with 1 if something was left that answered. Needs root.

import { parseArgs } from 'node:util';
import { namespacesMissing } from './support/namespaces.ts';
import { SilentWorld } from './support/silent-clusters.ts';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '30' } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error(`--minutes ${values.minutes}: want a number above 0`);
const why = namespacesMissing();
if (why !== '') throw new Error(`check:verdicts${why}`);

const world = new SilentWorld();
let isFalse = false;
try {
  await world.start();
  for (const way of ['drop', 'black hole', 'reset'] as const)
    for (const failing of [[1], [1, 2]]) {
      const { leftMs, backMs, report } = await world.fail(way, failing);
      const failed = JSON.stringify(report.failures);
      console.log(
        `${way}, ${failing.length} of 2: left after ${leftMs} ms, used again ${backMs} ms after, failed ${failed}`,
      );
    }
  const look = async (where: string, part: number) => {
    const seconds = minutes * 60 * part;
    const { left, reports } = await world.calm(seconds);
    const answers = reports.map((each) => Object.values(each.answers).reduce((sum, count) => sum + count, 0));
    const found = left.join(', ') || 'nothing';
    console.log(`${where}, ${Math.round(seconds)} s: answered ${answers.join(', ')}; left ${found}`);
    isFalse ||= left.length > 0;
  };
  await look('near', 0.1);
  await world.setDistance('east', 200);
  await world.setDistance('west', 700);
  console.log(`west is suddenly 700 ms away: known and used after ${await world.whenUsed('west', 700)} ms`);
  await look('east 200 ms and west 700 ms away', 0.9);
} finally {
  await world.stop();
}
process.exitCode = isFalse ? 1 : 0;
