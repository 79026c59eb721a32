// `npm run check:gateways [-- --connections N --only TEXT]`: three clusters in networks that do not meet, two with the same Pods; gateways
// are killed, frozen, black-holed, drained and restarted under load, and every failed request is counted. Ends with 1 if more failed
// than is promised, or if anything but TLS to the gateways passed between the networks.

import { parseArgs } from 'node:util';
import { acts, judgeCapture, prepare } from './gateways/acts.ts';
import { Stage } from './gateways/stage.ts';

const { values } = parseArgs({
  options: { connections: { type: 'string', default: '10000' }, only: { type: 'string' } },
});
const connections = Number(values.connections);
if (!Number.isSafeInteger(connections) || connections < 1)
  throw new Error(`--connections ${values.connections}: expected a whole number above 0`);
const { only } = values;
const chosen = acts.filter(({ name }) => only === undefined || name.includes(only));
if (chosen.length === 0)
  throw new Error(`--only ${only}: no such act, there are ${acts.map(({ name }) => name).join('; ')}`);

let failed = 0;
async function play(name: string, run: () => Promise<string>): Promise<void> {
  const startMs = performance.now();
  const [mark, text] = await run().then(
    (seen) => ['ok', seen],
    (error: Error) => ['FAILED', error.message],
  );
  if (mark === 'FAILED') failed += 1;
  console.log(`${mark} ${name} (${((performance.now() - startMs) / 1000).toFixed(1)} s): ${text}`);
}

const stage = await Stage.open();
try {
  await prepare(stage);
  for (const act of chosen) await play(act.name, () => act.run(stage, { connections, slackMs: 0 }));
  await play('capture between the networks', () => judgeCapture(stage));
} finally {
  await stage.close();
}
console.log(failed === 0 ? 'all as promised' : `${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
