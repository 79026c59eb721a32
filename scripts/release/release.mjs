// `npm run release`: checks version and changelog, then writes dist/release: the npm package, the Helm chart, manifests,
// systemd units, the notes of the release and SHA256SUMS. `--image` adds the OCI image, `--allow-unreleased` takes the section
// "Unreleased" for the notes, `--out DIR` writes elsewhere. The same commit gives the same archives.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from '../build.mjs';
import { buildImage } from '../image/image.mjs';
import { root } from '../setup.mjs';
import { checkedFiles, releaseProblems, sectionOf } from './checks.mjs';

const { values: flags } = parseArgs({
  options: {
    out: { type: 'string', default: `${root}dist/release` },
    image: { type: 'boolean', default: false },
    'allow-unreleased': { type: 'boolean', default: false },
  },
});

const read = (path) => readFileSync(join(root, path), 'utf8');
const { version } = JSON.parse(read('package.json'));
const texts = Object.fromEntries(checkedFiles.map((path) => [path, read(path)]));
const problems = releaseProblems({ version, texts, isUnreleasedAllowed: flags['allow-unreleased'] });
if (problems.length > 0) {
  for (const problem of problems) console.error(`release: ${problem}`);
  process.exit(1);
}

await build();
const out = resolve(flags.out);
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', out], { cwd: root, stdio: 'pipe' });
archive(`portolan-chart-${version}.tgz`, 'deploy/chart', 'portolan');
archive(`portolan-manifests-${version}.tgz`, 'deploy', `portolan-manifests-${version}`, [
  'crds',
  'manifests',
  'kustomize',
]);
archive(`portolan-systemd-${version}.tgz`, 'deploy/systemd', `portolan-systemd-${version}`);
if (flags.image)
  await buildImage({ architectures: ['amd64', 'arm64'], out: join(out, 'image'), isLocked: true, log: console.log });
const notes = sectionOf(texts['CHANGELOG.md'], version) || sectionOf(texts['CHANGELOG.md'], 'Unreleased');
writeFileSync(join(out, 'NOTES.md'), `# Portolan ${version}\n\n${notes}\n`);
writeFileSync(join(out, 'SHA256SUMS'), checksums());
console.log(`release ${version} in ${out}:\n${readFileSync(join(out, 'SHA256SUMS'), 'utf8')}`);

/** Owners, times and order fixed, so that only the content decides about the bytes. */
function archive(name, folder, prefix, names = readdirSync(join(root, folder)).sort()) {
  const tar = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX'];
  const renamed = `--transform=s,^,${prefix}/,`;
  const bytes = execFileSync('tar', [...tar, renamed, '-C', join(root, folder), '-cf', '-', ...names], {
    maxBuffer: 1 << 28,
  });
  const packed = execFileSync('gzip', ['-n', '-9'], { input: bytes, maxBuffer: 1 << 28 });
  writeFileSync(join(out, name), packed);
}

function checksums() {
  const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name).slice(out.length + 1)).sort();
  const digest = (path) =>
    createHash('sha256')
      .update(readFileSync(join(out, path)))
      .digest('hex');
  return paths.map((path) => `${digest(path)}  ${path}\n`).join('');
}
