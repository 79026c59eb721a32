// Installs the locked dependencies once per lock file. Runs on Node 20 or later and needs nothing but npm.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

export function setUp() {
  const stamp = `${root}node_modules/.portolan-lock`;
  const lock = createHash('sha256')
    .update(readFileSync(`${root}package-lock.json`))
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  console.error('portolan: installing dependencies (npm ci)');
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: root, stdio: ['ignore', 2, 2] });
  writeFileSync(stamp, lock);
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
