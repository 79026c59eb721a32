// `npm run check:verdicts -- --minutes 30`: endpoints that stop answering in three ways, then a long run in which all of them answer and
// nothing may be left. Prints a table; ends with 1 if something was left that answered. Needs root.

import { parseArgs } from 'node:util';
import { namespacesMissing } from './support/namespaces.ts';
import { SilentWorld } from './support/silent-clusters.ts';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '30' } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error(`--minutes ${values.minutes}: want a number above 0`);
const missing = namespacesMissing();
if (missing !== '') throw new Error(`check:verdicts${missing}`);

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
  for (const distanceMs of [0, 200, 700]) {
    if (distanceMs > 0) world.setDistance('west', distanceMs);
    const { left, reports } = await world.calm((minutes * 60) / 3);
    const answers = reports.map((each) => Object.values(each.answers).reduce((sum, count) => sum + count, 0));
    console.log(
      `${distanceMs} ms, ${(minutes / 3).toFixed(1)} min: answered ${answers.join(', ')}; left ${left.join(', ') || 'nothing'}`,
    );
    isFalse ||= left.length > 0;
  }
} finally {
  await world.stop();
}
process.exitCode = isFalse ? 1 : 0;
