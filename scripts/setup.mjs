// Installs the locked dependencies once per lock file. Runs on Node 20 or later and needs nothing but npm.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

export function setUp() {
  if (isSetUp()) return;
  withLock(() => {
    if (isSetUp()) return;
    console.error('portolan: installing dependencies (npm ci)');
    execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: root, stdio: ['ignore', 2, 2] });
    writeFileSync(stamp, lockHash());
  });
}

/** A checkout that cannot be written is asked again each time, which costs little. */
function note() {
  try {
    writeFileSync(stamp, lockHash());
  } catch (error) {
    if (!['EROFS', 'EACCES', 'EPERM'].includes(error.code)) throw error;
  }
}

const stamp = `${root}node_modules/.portolan-lock`;

function isSetUp() {
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lockHash()) return true;
  if (!isInstalled()) return false;
  note();
  return true;
}

/** Whether npm was run by hand: it lists what it installed. Packages for other platforms may be missing. */
function isInstalled() {
  const list = `${root}node_modules/.package-lock.json`;
  if (!existsSync(list)) return false;
  const { packages: installed } = JSON.parse(readFileSync(list, 'utf8'));
  const { packages: wanted } = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8'));
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    if (path === '') return true;
    return installed[path] === undefined ? optional === true : installed[path].version === version;
  });
}

function lockHash() {
  return createHash('sha256')
    .update(readFileSync(`${root}package-lock.json`))
    .digest('hex');
}

// Several commands may be started at once in a fresh checkout; npm would tear the folder from under itself.
function withLock(act) {
  const lock = `${root}.setup-lock`;
  const startedAt = Date.now();
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if (['EROFS', 'EACCES', 'EPERM'].includes(error.code))
        throw new Error(
          `portolan: ${root} has no dependencies and cannot be written; run npm ci there with the right to write`,
        );
      if (error.code !== 'EEXIST') throw error;
      if (Date.now() - startedAt > 300_000)
        throw new Error(`portolan: another set-up is under way; if not, remove ${lock}`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    }
  }
  try {
    act();
  } finally {
    rmdirSync(lock);
  }
}

// Node 24 or later: the package that npm ci installed for this platform, else the Node that runs us.
export function findNode() {
  for (const platform of ['linux-x64', 'linux-arm64']) {
    const bundled = `${root}node_modules/node-${platform}/bin/node`;
    if (existsSync(bundled)) return bundled;
  }
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
  throw new Error(
    `portolan needs Node 24 or later, found ${process.versions.node} and no bundled one for this platform`,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) setUp();
