// The image as a container runtime sees it: reproducible, listed in its SBOM, and working as another user on a read-only
// root file system.

import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { arch, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findCommand } from '../scripts/counterparts.mjs';
import { buildImage } from '../scripts/image/image.mjs';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import { type ImageConfig, readBlob, readManifest, UnpackedImage } from './support/image.ts';

const architecture = arch() === 'arm64' ? 'arm64' : 'amd64';
const why = process.getuid?.() !== 0 || findCommand('apt-get') === undefined ? ' (needs root and apt)' : '';

describe.skipIf(why !== '')(`image${why}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-layout-'));
  const layout = join(folder, 'first');
  let digest: string;
  let image: UnpackedImage;

  beforeAll(async () => {
    digest = (await buildImage({ architectures: [architecture], out: layout })).index!;
    image = new UnpackedImage(layout, architecture);
  });

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
    for (const name of ['broker', 'east']) {
      image.start(['api', '--data', `/var/lib/portolan/${name}`, '--listen', '127.0.0.1:0']);
    }
    const config = (name: string) => `/var/lib/portolan/${name}/admin.kubeconfig`;
    for (const name of ['broker', 'east']) await untilThere(join(image.state, name, 'admin.kubeconfig'));
    const typed = async (...args: string[]) => {
      const { code, text } = await image.run(args);
      expect(code, `portolan ${args.join(' ')}\n${text}`).toBe(0);
      return text;
    };
    await typed('broker', 'init', '--clusterset', 'prod', '--kubeconfig', config('broker'));
    const offer = await typed('broker', 'token', 'east', '--clusterset', 'prod', '--kubeconfig', config('broker'));
    const token = offer.split(/\s+/).find((word) => word.length > 100)!;
    await typed('join', token, '--kubeconfig', config('east'));
    image.start(['agent', '--kubeconfig', config('east')]);
    const resolver = ['dns', '--cluster-id', 'east', '--listen', '127.0.0.1:0', '--kubeconfig', config('east')];
    const admin = await printedBy(image.start(resolver), /http:\/\/127\.0\.0\.1:\d+/);
    await createNamespace(join(image.state, 'east/admin.kubeconfig'), 'shop');
    const process = ['--address', '10.1.0.7', '--port', 'http=8080'];
    await typed('register', 'shop/checkout', ...process, '--kubeconfig', config('east'));
    await typed('export', 'shop/checkout', '--wait', '--kubeconfig', config('east'));
    let answer = '';
    for (let tries = 0; tries < 100 && !/ 243\.\d+\.\d+\.\d+/.test(answer); tries++) {
      answer = (await image.run(['dig', 'checkout.shop.svc.clusterset.local', '--admin', admin])).text;
    }
    expect(answer).toMatch(/ 243\.\d+\.\d+\.\d+/);
  });
});

async function untilThere(path: string): Promise<void> {
  for (let tries = 0; tries < 600 && !existsSync(path); tries++) await pause(50);
  expect(existsSync(path)).toBe(true);
}

async function createNamespace(kubeconfig: string, name: string): Promise<void> {
  const world = createRealWorld();
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
  const client = createClient(world.network.http(access), { world, userAgent: 'test' });
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await client.close();
}

function printedBy(child: ChildProcess, pattern: RegExp): Promise<string> {
  let text = '';
  return new Promise((resolve, reject) => {
    const read = (chunk: Buffer) => {
      text += chunk;
      const found = pattern.exec(text);
      if (found !== null) resolve(found[0]);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    child.once('exit', () => reject(new Error(`ended without printing ${pattern}:\n${text}`)));
  });
}
