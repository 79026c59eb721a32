// The files of a home's keys and certificates, under `pki/` of its data directory.

import { createPrivateKey } from 'node:crypto';
import type { World } from '../../base/world.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';

export interface PkiFilesOptions {
  readonly world: Pick<World, 'disk'>;
  /** The home's data directory. */
  readonly directory: string;
}

const ownerOnly = 0o600;

export class PkiFiles {
  readonly #options: PkiFilesOptions;

  constructor(options: PkiFilesOptions) {
    this.#options = options;
  }

  path(name: string): string {
    return `${this.#options.directory}/pki/${name}`;
  }

  async read(name: string): Promise<string | undefined> {
    const bytes = await this.#options.world.disk.read(this.path(name));
    return bytes === undefined ? undefined : Buffer.from(bytes).toString('utf8');
  }

  async write(name: string, content: string): Promise<void> {
    const mode = name.endsWith('.key') ? ownerOnly : 0o644;
    await this.#options.world.disk.write(this.path(name), Buffer.from(content), { mode });
  }

  async remove(name: string): Promise<void> {
    await this.#options.world.disk.remove(this.path(name));
  }

  async openKey(name: string): Promise<string> {
    const kept = await this.read(name);
    if (kept !== undefined) {
      this.check(name, () => createPrivateKey(kept).asymmetricKeyType === 'ec', 'it is not a P-256 key');
      return kept;
    }
    const key = generatePrivateKey();
    await this.write(name, key);
    return key;
  }

  check(name: string, isGood: () => boolean, problem: string): void {
    const fail = (found: string, cause?: unknown) =>
      new Error(`open ${this.path(name)}: ${found}; put back the right file, or move it away to get a new one`, {
        cause,
      });
    let isFine: boolean;
    try {
      isFine = isGood();
    } catch (cause) {
      throw fail('it cannot be read as PEM', cause);
    }
    if (!isFine) throw fail(problem);
  }
}
