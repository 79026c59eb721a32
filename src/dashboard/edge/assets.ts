// The built page and the codes that it explains, read into memory once, compressed when it is first asked for: a request never names a file on disk.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { codes } from '../../doctor/codes.ts';
import type { CodeDoc } from '../wire/views.ts';

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
    const name = `/${relative(folder, path)}`;
    assets.set(name === '/index.html' ? '/' : name, assetOf(type, readFileSync(path)));
  }
  const docs: readonly CodeDoc[] = Object.entries(codes).map(([code, info]) => ({ code, ...info }));
  assets.set('/docs/codes.json', assetOf('application/json', Buffer.from(JSON.stringify(docs))));
  return assets;
}

function assetOf(type: string, body: Buffer): Asset {
  let zipped: Buffer | undefined;
  return { type, body, gzip: () => (zipped ??= gzipSync(body, { level: 9 })) };
}
