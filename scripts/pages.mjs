// Bundles the pages of the dashboard. The bundle of an earlier build is used again if nothing that it is made of differs in
// content: most changes of the sources are not of the page.
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './setup.mjs';

const pages = `${root}src/dashboard/pages`;

export async function bundlePages(outDir, earlier) {
  const digest = digestOf();
  const stamp = `${earlier}/.content`;
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) cpSync(earlier, outDir, { recursive: true });
  else await bundle(outDir);
  writeFileSync(`${outDir}/.content`, digest);
}

async function bundle(outDir) {
  // Vite and React go by this variable from their start, and a test runner sets it otherwise.
  process.env.NODE_ENV = 'production';
  const { build } = await import('vite');
  await build({
    root: pages,
    configFile: false,
    logLevel: 'error',
    mode: 'production',
    build: { outDir, emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false }, target: 'es2022' },
  });
}

function digestOf() {
  const hash = createHash('sha256');
  const files = [
    `${root}package-lock.json`,
    `${root}scripts/pages.mjs`,
    ...filesUnder(pages),
    ...filesUnder(`${root}src/dashboard/wire`),
  ];
  for (const file of files.sort())
    hash
      .update(`${file.slice(root.length)}\0`)
      .update(readFileSync(file))
      .update('\0');
  return hash.digest('hex');
}

function filesUnder(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
