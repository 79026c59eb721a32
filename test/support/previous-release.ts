// The previous release, built from history: the commit that scripts/release/previous names, beside this checkout, with our
// node_modules where they hold what its lock file names, or what npm would take in its place without that file. What its
// page needs and ours no longer does (@xyflow/react) stays among our packages until that commit moves.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../../src/base/version.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface PreviousRelease {
  /** Its `portolan`. */
  readonly program: string;
  readonly version: string;
}

/** False in a shallow clone, which holds no older commits. */
export function hasHistory(): boolean {
  const commit = readFileSync(join(root, 'scripts/release/previous'), 'utf8').trim();
  return spawnSync('git', ['-C', root, 'cat-file', '-e', commit]).status === 0;
}

export function buildPreviousRelease(directory: string): PreviousRelease {
  const commit = readFileSync(join(root, 'scripts/release/previous'), 'utf8').trim();
  mkdirSync(directory, { recursive: true });
  execFileSync('tar', ['-x', '-C', directory], { input: archiveOf(commit), stdio: ['pipe', 'ignore', 'inherit'] });
  const differing = differingPackages(join(directory, 'package-lock.json'));
  if (differing.length > 0)
    throw new Error(`previous release ${commit}: run npm ci in ${directory}; it needs ${differing.join(', ')}`);
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  const file = join(directory, 'src/base/version.ts');
  // Between releases both say the same; whoever is behind would not show.
  const theirs = /version = '([^']+)'/.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
  const shown = theirs === version ? `${theirs}-previous` : theirs;
  writeFileSync(file, `// The version of this program.\n\nexport const version = '${shown}';\n`);
  execFileSync(process.execPath, [join(directory, 'scripts/build.mjs')], { stdio: ['ignore', 'ignore', 'inherit'] });
  return { program: join(directory, 'bin/portolan'), version: shown };
}

function archiveOf(commit: string): Buffer {
  try {
    return execFileSync('git', ['-C', root, 'archive', commit], {
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  } catch (cause) {
    throw new Error(
      `the previous release is commit ${commit} (scripts/release/previous), which this checkout does not have; a shallow clone needs git fetch --unshallow`,
      { cause },
    );
  }
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly dev?: boolean }>>;
}

/** Packages at run time, in place of which ours does not serve. */
function differingPackages(lockFile: string): string[] {
  const read = (path: string) => (JSON.parse(readFileSync(path, 'utf8')) as Lock).packages;
  const ours = read(join(root, 'package-lock.json'));
  return Object.entries(read(lockFile))
    .filter(([path, { version: theirs, dev }]) => path !== '' && !dev && !serves(ours[path]?.version, theirs))
    .map(([path, { version: theirs }]) => `${path} ${theirs}`);
}

/** The same version, or a later one of the same major: what a dependency on ^THEIRS admits. */
function serves(ours = '', theirs = ''): boolean {
  if (ours === theirs) return true;
  const [major, ...later] = ours.split('.').map(Number);
  const [wantedMajor, ...least] = theirs.split('.').map(Number);
  if (major !== wantedMajor || !(major! > 0)) return false;
  const at = least.findIndex((part, index) => part !== later[index]);
  return at >= 0 && later[at]! > least[at]!;
}
