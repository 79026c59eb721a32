// Puts the SDK of OpenTelemetry into the one compiled file that uses it: an installed Portolan has no further packages for it, and
// nothing of it is read where it is not asked for. The bundle of an earlier build is used again if it is made of the same.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { root } from './setup.mjs';

const name = 'base/telemetry/edge/open-telemetry.js';

export async function bundleTelemetry(outDir, earlier) {
  const compiled = `${outDir}/src/${name}`;
  const digest = createHash('sha256');
  for (const file of [`${root}package-lock.json`, `${root}scripts/telemetry.mjs`, compiled])
    digest.update(readFileSync(file));
  const content = digest.digest('hex');
  const [stamp, before] = [`${earlier}/src/${name}.content`, `${earlier}/src/${name}`];
  if (existsSync(before) && existsSync(stamp) && readFileSync(stamp, 'utf8') === content)
    copyFileSync(before, compiled);
  else await bundle(compiled);
  writeFileSync(`${compiled}.content`, content);
}

async function bundle(compiled) {
  process.env.NODE_ENV = 'production';
  const { build } = await import('vite');
  const { output } = await build({
    configFile: false,
    logLevel: 'error',
    mode: 'production',
    ssr: { noExternal: true, target: 'node' },
    build: {
      ssr: compiled,
      write: false,
      target: 'node24',
      minify: true,
      rolldownOptions: { output: { codeSplitting: false } },
    },
  });
  if (output.length !== 1) throw new Error(`build: the SDK of OpenTelemetry became ${output.length} files`);
  writeFileSync(compiled, output[0].code);
}
