// Compiles the sources to dist/ unless what is there is newer than all of them. A compiled process starts faster and
// needs 30 MB less than one that strips types as it loads.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundlePages } from './pages.mjs';
import { root } from './setup.mjs';
import { bundleTelemetry } from './telemetry.mjs';

export async function build() {
  const stamp = `${root}dist/.built`;
  if (existsSync(stamp) && newestMs(['src', 'deploy', 'package-lock.json']) <= statSync(stamp).mtimeMs) return;
  const startedAt = new Date();
  // Built aside and moved into place, so that a process starting meanwhile never sees half of it.
  const fresh = `${root}.dist-${process.pid}`;
  mkdirSync(fresh);
  try {
    compile(fresh);
    await compileDefinitions(fresh);
    await bundleTelemetry(fresh, `${root}dist`);
    await bundlePages(`${fresh}/dashboard`, `${root}dist/dashboard`);
    writeFileSync(`${fresh}/.built`, '');
    spawnSync('touch', ['-d', startedAt.toISOString(), `${fresh}/.built`]);
    rmSync(`${root}.dist-old-${process.pid}`, { recursive: true, force: true });
    if (existsSync(`${root}dist`)) renameSync(`${root}dist`, `${root}.dist-old-${process.pid}`);
    renameSync(fresh, `${root}dist`);
  } finally {
    for (const left of [fresh, `${root}.dist-old-${process.pid}`]) rmSync(left, { recursive: true, force: true });
  }
}

function compile(outDir) {
  const args = ['-p', `${root}tsconfig.build.json`, '--outDir', `${outDir}/src`];
  const { status, stdout } = spawnSync(`${root}node_modules/.bin/tsc`, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`build: the sources do not compile\n${stdout}`);
  cpSync(`${root}src/gen`, `${outDir}/src/gen`, { recursive: true, filter: (path) => !path.endsWith('.ts') });
  cpSync(`${root}deploy`, `${outDir}/deploy`, { recursive: true });
}

// Reading YAML would be a good part of every start: it is done once, by the program's own rules.
async function compileDefinitions(outDir) {
  const { loadDefinitions } = await import(`${outDir}/src/home/definitions/bundled.js`);
  const folder = `${outDir}/deploy/crds`;
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  const definitions = loadDefinitions(files.sort().map((name) => readFileSync(`${folder}/${name}`, 'utf8')));
  writeFileSync(`${folder}/definitions.json`, JSON.stringify(definitions));
}

function newestMs(names) {
  return Math.max(...names.map((name) => newestUnder(join(root, name))));
}

function newestUnder(path) {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  // Programs that run from source write their compile cache there, and take files of it away again.
  const names = readdirSync(path).filter((name) => name !== '.compile-cache');
  return Math.max(mtimeMs, ...names.map((name) => newestUnder(join(path, name))));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await build();
  } catch (error) {
    console.error(`portolan: ${error.message}`);
    process.exitCode = 1;
  }
}
