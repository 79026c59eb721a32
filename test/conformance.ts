// `npm run conformance -- --suite FILE --kubeconfig FILE --contexts east,west [--times 3] [--policies TEXT] [--out FOLDER]`: the
// conformance suite of the Multi-Cluster Services API, unchanged, on clusters that run Portolan. Writes a report that says what was
// run on what. Ends with 1 unless every case passed every time.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runConformance } from './conformance/run.ts';

const { values } = parseArgs({
  options: {
    /** The compiled suite. */
    suite: { type: 'string' },
    'suite-version': { type: 'string', default: 'version not given' },
    kubeconfig: { type: 'string', default: process.env['KUBECONFIG'] ?? '' },
    contexts: { type: 'string', default: 'east,west' },
    times: { type: 'string', default: '1' },
    policies: { type: 'string', default: 'defaults' },
    out: { type: 'string', default: 'conformance' },
    /** As a submitted report names them. */
    organization: { type: 'string', default: '' },
    url: { type: 'string', default: '' },
  },
});
const { suite, kubeconfig, policies, out, organization, url } = values;
const times = Number(values.times);
const contexts = values.contexts.split(',').filter(Boolean);
if (suite === undefined) throw new Error('--suite is missing: the path of the compiled suite; see docs/conformance.md');
if (kubeconfig === '') throw new Error('--kubeconfig is missing: one with a context for each cluster');
if (!Number.isSafeInteger(times) || times < 1)
  throw new Error(`--times ${values.times}: expected a whole number above 0`);
if (contexts.length < 2) throw new Error(`--contexts ${values.contexts}: expected two or more, separated by commas`);

const folder = mkdtempSync(join(tmpdir(), 'portolan-conformance-'));
console.log(`logs: ${folder}`);
const names = { organization, url, images: 'pulled by the nodes', suiteVersion: values['suite-version'] };
const common = { suite, kubeconfig, contexts, folder, times, policies, out, say: console.log };
const isPassed = await runConformance({ ...common, ...names });
process.exitCode = isPassed ? 0 : 1;
