// The image as a container runtime sees it: reproducible, listed in its SBOM, and working as another user on a read-only
// root file system.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { arch, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findCommand } from '../scripts/counterparts.mjs';
import { buildImage } from '../scripts/image/image.mjs';
import { type ImageConfig, readBlob, readManifest, UnpackedImage } from './support/image.ts';
import { answerOf } from './support/image-roles.ts';

const architecture = arch() === 'arm64' ? 'arm64' : 'amd64';
const why = process.getuid?.() !== 0 || findCommand('apt-get') === undefined ? ' (needs root and apt)' : '';

describe.skipIf(why !== '')(`image${why}`, { timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-layout-'));
  const layout = join(folder, 'first');
  let digest: string;
  let image: UnpackedImage;

  beforeAll(async () => {
    digest = (await buildImage({ architectures: [architecture], out: layout })).index!;
    image = new UnpackedImage(layout, architecture);
  }, 600_000);

  afterAll(async () => {
    await image?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  test('built again from the same inputs -> the same digest', async () => {
    const again = await buildImage({ architectures: [architecture], out: join(folder, 'second') });
    expect(again.index).toBe(digest);
  });

  test('its configuration -> not root, one program for every role; no package manager inside', async () => {
    const manifest = readManifest(layout, architecture);
    const { config, rootfs } = readBlob<ImageConfig>(layout, manifest.config.digest);
    expect(config.User).toBe('65532:65532');
    expect(rootfs.diff_ids).toHaveLength(manifest.layers.length);
    expect(existsSync(join(image.root, 'usr/bin/apt-get'))).toBe(false);
    expect((await image.run(['--version'])).text.trim()).toBe(
      JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version,
    );
    expect((await image.run(['--version'], ['/usr/sbin/nft'])).text).toMatch(/^nftables v/);
    expect((await image.run(['-V'], ['/sbin/ip'])).text).toMatch(/^ip utility, iproute2/m);
    expect(config.Env).toEqual(expect.arrayContaining(['MALLOC_ARENA_MAX=2', 'MALLOC_MMAP_THRESHOLD_=131072']));
  });

  test('its SBOM -> Node, every dependency, every Debian package with its checksum; no development tool', () => {
    const sbom = JSON.parse(readFileSync(join(layout, `sbom-${architecture}.spdx.json`), 'utf8'));
    const names: string[] = sbom.packages.map(({ name }: { name: string }) => name);
    for (const name of ['portolan', 'libc6', 'nftables', 'commander', 'yaml']) expect(names).toContain(name);
    for (const name of ['vitest', 'typescript', 'apt']) expect(names).not.toContain(name);
    const libc = sbom.packages.find(({ name }: { name: string }) => name === 'libc6');
    expect(libc.checksums[0].checksumValue).toMatch(/^[0-9a-f]{64}$/);
    const inside = readFileSync(join(image.root, 'opt/portolan/sbom.spdx.json'), 'utf8');
    expect(JSON.parse(inside)).toEqual(sbom);
  });

  test('started as another user, root file system read-only -> home, agent and resolver work', async () => {
    expect(await answerOf(image)).toMatch(/ 243\.\d+\.\d+\.\d+/);
  });
});
