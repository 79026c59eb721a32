// The built page, read into memory once, compressed when it is first asked for: a request never names a file on disk.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';

interface Asset {
  readonly type: string;
  readonly body: Buffer;
  gzip(): Buffer;
}

export type Assets = ReadonlyMap<string, Asset>;

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** By path, such as `/assets/main-1a2b3c4d.js`; `/` is the page itself. */
export function readAssets(folder: string): Assets {
  if (!existsSync(join(folder, 'index.html')))
    throw new Error(`dashboard: there is no built page in ${folder}; run node scripts/build.mjs`);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const assets = new Map<string, Asset>();
  for (const entry of files) {
    const path = join(entry.parentPath, entry.name);
    const type = types[extname(path)];
    if (type === undefined) continue;
    const body = readFileSync(path);
    const name = `/${relative(folder, path)}`;
    let zipped: Buffer | undefined;
    const gzip = () => (zipped ??= gzipSync(body, { level: 9 }));
    assets.set(name === '/index.html' ? '/' : name, { type, body, gzip });
  }
  return assets;
}
