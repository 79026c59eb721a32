// `npm run chaos:proxy`: the plan against the model on 100,000 random catalogs, then, as root, 1,000 random changes with kills
// in between, after each of which the kernel must equal the plan. `--catalogs N`, `--changes N`, `--every N`, `--seed N`.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { comparePlan } from '../../src/proxy/testing/compare-plan.ts';
import { Namespaces, namespacesMissing } from '../support/namespaces.ts';
import { runChaos } from '../support/proxy-chaos.ts';
import { startNodeHome } from '../support/proxy-processes.ts';

const { values } = parseArgs({
  options: {
    catalogs: { type: 'string', default: '100000' },
    changes: { type: 'string', default: '1000' },
    every: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
  },
});
const seed = Number(values.seed);
let compared = 0;
for (let each = 0; each < Number(values.catalogs); each += 1) {
  const result = comparePlan(seed + each);
  if (result.difference !== undefined) throw new Error(result.difference);
  compared += result.compared;
}
console.log(`plan: ${values.catalogs} catalogs, ${compared} connections, all as the model says`);

const why = namespacesMissing();
if (why !== '') throw new Error(`the kernel is not tried${why}`);
const directory = mkdtempSync(join(tmpdir(), 'portolan-chaos-'));
const net = new Namespaces('px');
const node = net.addMachine('node', 11);
const scratch = net.addMachine('scratch', 12);
const home = await startNodeHome(net, node, { directory: `${directory}/home` });
try {
  await home.order({ put: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } } });
  const [changes, every] = [Number(values.changes), Number(values.every)];
  const { comparisons, kills } = await runChaos({ net, node, scratch, home, directory, seed, changes, every });
  console.log(`kernel: ${changes} changes, ${kills} kills, equal to the plan in ${comparisons} comparisons`);
} finally {
  await home.stop();
  net.remove();
  rmSync(directory, { recursive: true, force: true });
}
process.exit(0);
