// Control groups of one run, below which kubelets keep those of their Pods; version 1 (a folder in each hierarchy) and 2.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const mount = '/sys/fs/cgroup';

function hierarchies(): string[] {
  if (existsSync(join(mount, 'cgroup.controllers'))) return [mount];
  return readdirSync(mount)
    .filter((name) => name !== 'unified')
    .map((name) => join(mount, name));
}

export function makeGroup(name: string): void {
  for (const hierarchy of hierarchies()) {
    const folder = join(hierarchy, name);
    mkdirSync(folder, { recursive: true });
    // A group without processors or memory takes no process; it starts without.
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      if (existsSync(join(folder, file)) && hierarchy !== mount)
        writeFileSync(join(folder, file), readFileSync(join(hierarchy, file)));
  }
}

/** Once every process in it has ended. */
export function removeGroup(name: string): void {
  for (const hierarchy of hierarchies()) removeTree(join(hierarchy, name));
}

function removeTree(folder: string): void {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  rmdirSync(folder);
}
