// Downloads Debian packages of any architecture with this machine's apt, in a state of its own, and unpacks them.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Unpacks the packages into a folder; returns name, version and checksum of each. */
export function unpackDebian({ architecture, packages, into, work }) {
  const state = join(work, `apt-${architecture}`);
  for (const name of ['lists/partial', 'cache/archives/partial', 'debs'])
    mkdirSync(join(state, name), { recursive: true });
  writeFileSync(join(state, 'status'), '');
  const apt = (args) =>
    execFileSync('apt-get', ['-qq', ...options(state, architecture), ...args], {
      cwd: join(state, 'debs'),
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  apt(['update']);
  apt(['download', ...packages]);
  return readdirSync(join(state, 'debs'))
    .sort()
    .map((file) => {
      const path = join(state, 'debs', file);
      execFileSync('dpkg-deb', ['-x', path, into]);
      return { ...describe(path), sha256: createHash('sha256').update(readFileSync(path)).digest('hex') };
    });
}

function options(state, architecture) {
  return Object.entries({
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': 'root',
    'Dir::State::lists': join(state, 'lists'),
    'Dir::State::status': join(state, 'status'),
    'Dir::Cache': join(state, 'cache'),
    'Acquire::Languages': 'none',
  }).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
}

function describe(path) {
  const field = (name) => execFileSync('dpkg-deb', ['-f', path, name], { encoding: 'utf8' }).trim();
  return { name: field('Package'), version: field('Version') };
}
