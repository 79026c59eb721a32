// `npm run check:access [-- --attempts N]` (root): random attempts from Pods of every cluster to every Pod, by packets and by gateway, also
// while exports change 100 times a second, beside a capture at the Pods. The tests make a few hundred of the same.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { attempts: { type: 'string', default: '10000' } } });
const attempts = Number(values.attempts);
if (!Number.isSafeInteger(attempts) || attempts < 1)
  throw new Error(`--attempts ${values.attempts}: expected a whole number above 0`);
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const files = ['test/access-node.test.ts', 'test/gateways/refused.test.ts'];
const args = [vitest, 'run', '--reporter=verbose', '--testTimeout=1200000', '-t', 'random attempts|access:', ...files];
const { status } = spawnSync(process.execPath, args, {
  ...{ cwd: fileURLToPath(new URL('..', import.meta.url)), stdio: 'inherit' },
  env: { ...process.env, ACCESS_ATTEMPTS: String(attempts) },
});
process.exitCode = status ?? 1;
