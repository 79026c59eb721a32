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

const stamp = `${root}node_modules/.portolan-lock`;

function isSetUp() {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lockHash();
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
