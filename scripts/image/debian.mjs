// Downloads Debian packages of any architecture with this machine's apt, in a state of its own, and unpacks them. Versions and
// checksums are those of debian.lock.json: a package of that version with other contents is refused, and with `isLocked` so is
// any other version.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Unpacks the packages into a folder; returns name, version and checksum of each. */
export function unpackDebian({ architecture, packages, into, work, lock = {}, isLocked = false }) {
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
  apt(['download', ...packages.map((name) => (isLocked ? exact(name, lock[architecture]) : name))]);
  const paths = readdirSync(join(state, 'debs'))
    .sort()
    .map((file) => join(state, 'debs', file));
  const found = paths.map((path) => ({
    ...describe(path),
    sha256: createHash('sha256').update(readFileSync(path)).digest('hex'),
  }));
  const problems = lockProblems({ found, locked: lock[architecture] ?? {}, isLocked });
  if (problems.length > 0) throw new Error(`Debian packages for ${architecture}: ${problems.join('; ')}`);
  for (const path of paths) execFileSync('dpkg-deb', ['-x', path, into]);
  return found;
}

function exact(name, locked) {
  const version = locked?.[name]?.version;
  return version === undefined ? name : `${name}=${version}`;
}

/** Of packages that were downloaded, beside those of the lock. */
export function lockProblems({ found, locked, isLocked }) {
  return found.flatMap(({ name, version, sha256 }) => {
    const wanted = locked[name];
    if (wanted?.version === version)
      return wanted.sha256 === sha256 ? [] : [`${name} ${version} has checksum ${sha256}, not ${wanted.sha256}`];
    return isLocked ? [`${name} ${version} is not in the lock, which has ${wanted?.version ?? 'none'}`] : [];
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
