// A folder of its own size, which can be filled. Needs root.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export const hasSmallDisks = process.getuid?.() === 0;

export class SmallDisk {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', folder]);
  }

  fill(): void {
    // A short write is the point.
    spawnSync('dd', ['if=/dev/zero', `of=${this.#ballast}`, 'bs=4k', 'count=20000', 'oflag=append', 'conv=notrunc']);
  }

  free(): void {
    rmSync(this.#ballast, { force: true });
  }

  close(): void {
    execFileSync('umount', ['-l', this.folder]);
  }

  get #ballast(): string {
    return join(this.folder, 'ballast');
  }
}
