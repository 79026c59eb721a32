// `npm run test:nodes [-- --short] [--conformance FILE [--times 3] [--out FOLDER]] [--init=FLAGS] [--set VALUE] [--keep] [--install]`: two
// real clusters with one node each, the chart
// installed in the order of the quick start, Pods, rollouts under load. Needs root and the programs of Kubernetes in
// KUBEBUILDER_ASSETS; --install installs missing Debian packages. Ends with 1 if anything is not as promised.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Act, acts } from './nodes/acts.ts';
import { removeGroup } from './nodes/cgroups.ts';
import { conformanceAct } from './nodes/conformance.ts';
import { makeImages, type NodeImage } from './nodes/images.ts';
import { nodesMissing, packagesMissing } from './nodes/programs.ts';
import { groupOf, NodeStage, nodeNames } from './nodes/stage.ts';
import { spawnTied } from './support/tied-process.ts';

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    /** The compiled conformance suite of the Multi-Cluster Services API. */
    conformance: { type: 'string' },
    'suite-version': { type: 'string', default: 'version not given' },
    times: { type: 'string', default: '1' },
    /** For the report on conformance. */
    out: { type: 'string' },
    install: { type: 'boolean', default: false },
    /** Further flags of `portolan broker init`, and values of the chart: other policies than the defaults. */
    init: { type: 'string', default: '' },
    set: { type: 'string', multiple: true, default: [] },
    /** Leaves the folder with all logs. */
    keep: { type: 'boolean', default: false },
    /** Given to itself by its first process. */
    inside: { type: 'string' },
  },
});

interface Task {
  readonly folder: string;
  readonly group: string;
  readonly images: readonly NodeImage[];
}

// The programs of the clusters run on; they end with this process.
process.exit(values.inside === undefined ? await outside() : await inside(JSON.parse(values.inside)));

/** Everything that needs the machine's own network, and what is left to remove. */
async function outside(): Promise<number> {
  const packages = packagesMissing();
  if (values.install && packages.length > 0)
    execFileSync('apt-get', ['install', '-y', '--no-install-recommends', ...packages], { stdio: 'inherit' });
  const missing = nodesMissing();
  if (missing !== '') throw new Error(`real nodes: ${missing}`);
  const folder = mkdtempSync(join(tmpdir(), 'portolan-nodes-'));
  const group = `portolan-${process.pid}`;
  try {
    mkdirSync(join(folder, 'images'));
    const task: Task = { folder, group, images: await makeImages(join(folder, 'images')) };
    const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const self = [process.execPath, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
    const words = [...namespaces, ...self, '--inside', JSON.stringify(task)];
    const child = spawnTied('unshare', words, { stdio: 'inherit' });
    // The first process of the namespaces would ignore the signal itself.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill('SIGKILL'));
    return await new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? 1)));
  } finally {
    for (const name of nodeNames) removeGroup(groupOf(group, name));
    if (values.keep) console.log(`logs: ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

/** In namespaces of its own, which end with this process and take every other one with them. */
async function inside({ folder, group, images }: Task): Promise<number> {
  const { conformance, short: isShort } = values;
  const choice = { initFlags: values.init, sets: values.set };
  const stage = new NodeStage({ folder, group, images, isShort, ...choice, say: console.log });
  const more = conformance === undefined ? [] : [conformanceOf(conformance)];
  for (const { name, run } of [...acts, ...more]) {
    const startMs = performance.now();
    const took = () => `${((performance.now() - startMs) / 1000).toFixed(1)} s`;
    try {
      const seen = await run(stage);
      console.log(`ok ${name} (${took()}): ${seen}`);
    } catch (error) {
      console.log(`FAILED ${name} (${took()}): ${(error as Error).message}`);
      return 1;
    }
  }
  console.log('all as promised');
  return 0;
}

function conformanceOf(suite: string): Act {
  const { out, times } = values;
  const options = { suite, suiteVersion: values['suite-version'], times: Number(times), policies: policies() };
  return conformanceAct(out === undefined ? options : { ...options, out });
}

function policies(): string {
  return [values.init, ...values.set].filter(Boolean).join(', ') || 'defaults';
}
