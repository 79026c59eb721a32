// Images without a registry: the sandbox of every Pod, Portolan's own, and one with a shell and network tools, made of programs of
// this machine and the libraries they load.

import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findCommand } from '../../scripts/counterparts.mjs';
import { buildImage } from '../../scripts/image/image.mjs';
import { createLayout } from '../../scripts/image/layout.mjs';
import { version } from '../../src/base/version.ts';
import { pathOf } from './programs.ts';

export const sandboxImage = 'registry.example/sandbox:1';
/** As the quick start names it. */
export const portolanImage = `registry.example/portolan:${version}`;

export interface NodeImage {
  /** Without the tag, as `ctr images import --base-name` wants it. */
  readonly name: string;
  /** An archive of an OCI layout. */
  readonly file: string;
}

/** Other names of the image with the tools, for Pods that ask for these images. */
const toolNames = [
  ['docker.io/nicolaka/netshoot', 'v0.15'],
  ['docker.io/alpine/socat', '1.7.4.4'],
] as const;
const tools = ['dash', 'nc', 'nslookup', 'socat', 'grep', 'mawk', 'tr', 'tail', 'sleep', 'cat', 'env', 'ip'];
const links = { '/bin/sh': 'dash', '/usr/bin/awk': 'mawk' };

/** Writes all images into the folder. */
export async function makeImages(folder: string): Promise<NodeImage[]> {
  const work = mkdtempSync(join(tmpdir(), 'portolan-node-images-'));
  try {
    const sandbox = join(work, 'sandbox');
    mkdirSync(join(sandbox, 'bin'), { recursive: true });
    copyFileSync(pathOf('busybox'), join(sandbox, 'bin/busybox'));
    const layout = join(work, 'layout');
    await buildImage({ architectures: [architecture], out: layout, isLocked: true });
    const toolRoot = join(work, 'tools');
    for (const name of tools) copyProgram(name, toolRoot);
    for (const [link, target] of Object.entries(links)) {
      mkdirSync(join(toolRoot, dirname(link)), { recursive: true });
      if (!existsSync(join(toolRoot, link))) symlinkSync(realpathSync(findCommand(target)!), join(toolRoot, link));
    }
    for (const name of ['tmp', 'etc', 'proc', 'sys', 'dev']) mkdirSync(join(toolRoot, name), { recursive: true });
    return [
      archive(layout, { name: 'registry.example/portolan', folder }),
      plain(sandbox, { name: 'registry.example/sandbox', tag: '1', folder, work, entrypoint: sleeper }),
      ...toolNames.map(([name, tag]) => plain(toolRoot, { name, tag, folder, work, entrypoint: [] })),
    ];
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
const sleeper = ['/bin/busybox', 'sleep', '2147483647'];

interface Plain {
  readonly name: string;
  readonly tag: string;
  readonly folder: string;
  readonly work: string;
  readonly entrypoint: readonly string[];
}

/** An image of one layer. */
function plain(root: string, { name, tag, folder, work, entrypoint }: Plain): NodeImage {
  const out = join(work, `layout-${name.replaceAll('/', '-')}`);
  const layout = createLayout(out, { createdAt: new Date(0) });
  const config = { Env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin'], Entrypoint: entrypoint };
  layout.addImage({ architecture, layers: [root], config, work });
  layout.finish(tag);
  return archive(out, { name, folder });
}

function archive(layout: string, { name, folder }: { readonly name: string; readonly folder: string }): NodeImage {
  const file = join(folder, `${name.replaceAll('/', '-')}.tar`);
  execFileSync('tar', ['-C', layout, '-cf', file, 'oci-layout', 'index.json', 'blobs']);
  return { name, file };
}

/** A program under its own path and its real one, with every library that the loader names. */
function copyProgram(name: string, root: string): void {
  const path = findCommand(name);
  if (path === undefined) throw new Error(`the image of tools needs ${name}, which is not on PATH`);
  const libraries = execFileSync('ldd', [path], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g);
  for (const file of [path, realpathSync(path), ...[...libraries].map(([, library]) => library!)]) {
    const into = join(root, file);
    if (existsSync(into)) continue;
    mkdirSync(dirname(into), { recursive: true });
    cpSync(realpathSync(file), into);
  }
}
