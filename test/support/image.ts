// An image of the OCI layout that `npm run image` writes, unpacked and started as a container runtime would: another user,
// a read-only root file system, one writable folder.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Descriptor {
  readonly digest: string;
  readonly platform?: { readonly architecture: string };
}

export interface ImageManifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

export interface ImageConfig {
  readonly config: { readonly User: string; readonly Entrypoint: readonly string[]; readonly Env: readonly string[] };
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

export function readManifest(layout: string, architecture: string): ImageManifest {
  const index = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as { manifests: Descriptor[] };
  const { manifests } = readBlob<{ manifests: Descriptor[] }>(layout, index.manifests[0]!.digest);
  const image = manifests.find(({ platform }) => platform?.architecture === architecture);
  if (image === undefined) throw new Error(`${layout} has no image for ${architecture}`);
  return readBlob<ImageManifest>(layout, image.digest);
}

export function readBlob<T>(layout: string, digest: string): T {
  return JSON.parse(readFileSync(blobPath(layout, digest), 'utf8')) as T;
}

function blobPath(layout: string, digest: string): string {
  return join(layout, 'blobs', digest.replace(':', '/'));
}

/** An unpacked image; `state` is the folder of the host that lies over /var/lib/portolan in it. */
export class UnpackedImage {
  readonly #directory = mkdtempSync(join(tmpdir(), 'portolan-image-test-'));
  readonly root = join(this.#directory, 'root');
  readonly state = join(this.#directory, 'state');
  readonly #entrypoint: readonly string[];
  readonly #user: string;
  readonly #started = new Set<ChildProcess>();

  /** `emulator` is a static program that runs those of another architecture. */
  constructor(layout: string, architecture: string, emulator?: string) {
    const manifest = readManifest(layout, architecture);
    const { config } = readBlob<ImageConfig>(layout, manifest.config.digest);
    this.#entrypoint = [...(emulator ? ['/emulator'] : []), ...config.Entrypoint];
    this.#user = config.User;
    mkdirSync(this.root);
    for (const { digest } of manifest.layers) {
      execFileSync('tar', ['-xzpf', blobPath(layout, digest), '-C', this.root]);
    }
    if (emulator) copyFileSync(emulator, join(this.root, 'emulator'));
    mkdirSync(this.state);
    const id = Number(config.User.split(':')[0]);
    chownSync(this.state, id, id);
  }

  /** Starts the image's program; paths under /var/lib/portolan are those of `state`. */
  start(args: readonly string[], program: readonly string[] = this.#entrypoint): ChildProcess {
    const mounts = [
      'mount --bind "$ROOT" "$ROOT"',
      'mount -o remount,bind,ro "$ROOT"',
      'mount --bind "$STATE" "$ROOT/var/lib/portolan"',
      'exec chroot --userspec="$WHO" "$ROOT" "$@"',
    ];
    const env = { PATH: process.env['PATH'], ROOT: this.root, STATE: this.state, WHO: this.#user };
    const command = ['-m', '--propagation', 'private', 'sh', '-ec', mounts.join('\n'), 'sh', ...program, ...args];
    const child = spawn('unshare', command, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#started.add(child);
    child.once('exit', () => this.#started.delete(child));
    return child;
  }

  async run(args: readonly string[], program?: readonly string[]): Promise<{ code: number | null; text: string }> {
    const child = this.start(args, program);
    let text = '';
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk: Buffer) => (text += chunk));
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, text };
  }

  async remove(): Promise<void> {
    const ended = [...this.#started].map((child) => new Promise((resolve) => child.once('exit', resolve)));
    for (const child of this.#started) child.kill('SIGKILL');
    await Promise.all(ended);
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
