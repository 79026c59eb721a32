// Writes an OCI image of Portolan for each architecture into one layout: `npm run image -- [--arch amd64,arm64] [--out DIR]`.
// Layers from what changes least to what changes most: Debian packages, Node, dependencies, Portolan itself.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from '../build.mjs';
import { root } from '../setup.mjs';
import { unpackDebian } from './debian.mjs';
import { createLayout } from './layout.mjs';
import { formatSbom } from './sbom.mjs';

const user = 65532;
const debianPackages = [
  'ca-certificates',
  'libc6',
  'libgcc-s1',
  'libstdc++6',
  // The proxy's tools and what they load; `nft -i` is started through a shell.
  'dash',
  'nftables',
  'libnftables1',
  'libnftnl11',
  'libmnl0',
  'libxtables12',
  'libjansson4',
  'libgmp10',
  'libedit2',
  'libbsd0',
  'libmd0',
  'libtinfo6',
  'conntrack',
  'libnetfilter-conntrack3',
  'libnfnetlink0',
  // The proxy reads the routes of its node.
  'iproute2',
  'libbpf1',
  'libcap2',
  'libelf1',
  'zlib1g',
];

/** Versions and checksums of the Debian packages, by architecture. */
const lockFile = fileURLToPath(new URL('./debian.lock.json', import.meta.url));

function readLock() {
  return JSON.parse(readFileSync(lockFile, 'utf8'));
}

function writeLock(path, packages) {
  const entries = Object.entries(packages).map(([architecture, list]) => [
    architecture,
    Object.fromEntries(list.map(({ name, version, sha256 }) => [name, { version, sha256 }])),
  ]);
  writeFileSync(path, `${JSON.stringify({ ...readLock(), ...Object.fromEntries(entries) }, null, 2)}\n`);
}

/** Builds the image into `out`, an OCI layout; returns the digest of each architecture's image and of the index. */
export async function buildImage({ architectures, out, isLocked = false, newLock, log = () => {} }) {
  await build();
  const { version, optionalDependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  const createdAt = commitTime();
  const work = mkdtempSync(join(tmpdir(), 'portolan-image-'));
  try {
    const layout = createLayout(out, { createdAt });
    const digests = {};
    const newPackages = {};
    for (const architecture of architectures) {
      log(`${architecture}: Debian packages`);
      const parts = ['system', 'node', 'dependencies', 'portolan'].map((name) => join(work, architecture, name));
      const [system, node, dependencies, portolan] = parts;
      for (const part of parts) mkdirSync(part, { recursive: true });
      const common = { architecture, packages: debianPackages, into: system, work };
      const packages = unpackDebian({ ...common, lock: readLock(), isLocked });
      newPackages[architecture] = packages;
      finishSystem(system);
      log(`${architecture}: Node ${nodeVersion(optionalDependencies, architecture)}`);
      copyNode({ architecture, version: nodeVersion(optionalDependencies, architecture), into: node, work });
      const modules = copyDependencies(join(dependencies, 'opt/portolan'));
      copyPortolan(join(portolan, 'opt/portolan'));
      const sbom = formatSbom({ version, architecture, createdAt, packages, modules, node: optionalDependencies });
      writeFile(join(portolan, 'opt/portolan/sbom.spdx.json'), sbom);
      writeFileSync(join(out, `sbom-${architecture}.spdx.json`), sbom);
      log(`${architecture}: layers`);
      digests[architecture] = layout.addImage({ architecture, layers: parts, config: imageConfig(version), work });
    }
    if (newLock !== undefined) writeLock(newLock, newPackages);
    return { ...digests, index: layout.finish(version) };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function imageConfig(version) {
  return {
    User: `${user}:${user}`,
    Env: [
      ...['PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/var/lib/portolan'],
      // As bin/portolan sets them.
      ...['MALLOC_ARENA_MAX=2', 'MALLOC_MMAP_THRESHOLD_=131072'],
    ],
    Entrypoint: [
      '/usr/bin/node',
      '--max-semi-space-size=8',
      '--heap-growing-percent=20',
      '/opt/portolan/dist/src/main.js',
    ],
    WorkingDir: '/var/lib/portolan',
    Volumes: { '/var/lib/portolan': {} },
    Labels: {
      'org.opencontainers.image.title': 'portolan',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': 'Apache-2.0',
    },
  };
}

// Installing would run these steps; here the files are only unpacked.
function finishSystem(folder) {
  const certificates = join(folder, 'usr/share/ca-certificates/mozilla');
  const bundle = execFileSync('sh', ['-c', 'cat *.crt'], { cwd: certificates, maxBuffer: 1 << 24 });
  writeFile(join(folder, 'etc/ssl/certs/ca-certificates.crt'), bundle);
  writeFile(
    join(folder, 'etc/passwd'),
    `root:x:0:0::/:/bin/false\nportolan:x:${user}:${user}::/var/lib/portolan:/bin/false\n`,
  );
  writeFile(join(folder, 'etc/group'), `root:x:0:\nportolan:x:${user}:\n`);
  writeFile(join(folder, 'etc/nsswitch.conf'), 'hosts: files dns\n');
  for (const name of ['tmp', 'proc', 'sys', 'dev', 'var/lib/portolan'])
    mkdirSync(join(folder, name), { recursive: true });
  for (const name of ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'usr/share/lintian', 'usr/share/bug']) {
    // Licences stay: /usr/share/doc/*/copyright.
    if (name === 'usr/share/doc')
      execFileSync('find', [join(folder, name), '-type', 'f', '!', '-name', 'copyright', '-delete']);
    else rmSync(join(folder, name), { recursive: true, force: true });
  }
}

function nodeVersion(optionalDependencies, architecture) {
  return optionalDependencies[nodePackage(architecture)];
}

function nodePackage(architecture) {
  return `node-linux-${architecture === 'amd64' ? 'x64' : architecture}`;
}

// The package with Node's binary is installed here for this machine's architecture alone; others come from the registry.
function copyNode({ architecture, version, into, work }) {
  const name = nodePackage(architecture);
  let folder = `${root}node_modules/${name}`;
  if (!existsSync(folder)) {
    folder = join(work, name);
    mkdirSync(folder, { recursive: true });
    execFileSync('npm', ['pack', '--silent', `${name}@${version}`], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    execFileSync('sh', ['-c', 'tar -xzf *.tgz --strip-components=1'], { cwd: folder });
  }
  mkdirSync(join(into, 'usr/bin'), { recursive: true });
  cpSync(join(folder, 'bin/node'), join(into, 'usr/bin/node'));
  cpSync(join(folder, 'LICENSE'), join(into, 'usr/share/doc/node/LICENSE'), { recursive: true });
}

/** Copies the dependencies that the program loads, as the lock file lists them; returns their names and versions. */
function copyDependencies(into) {
  const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8'));
  const modules = Object.entries(packages).filter(
    ([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional,
  );
  for (const [path] of modules) {
    cpSync(`${root}${path}`, join(into, path), {
      recursive: true,
      filter: (source) => !/\.(map|md|d\.ts|d\.mts|d\.cts)$/.test(source),
    });
  }
  return modules.map(([path, { version, license }]) => ({
    name: path.replace(/^.*node_modules\//, ''),
    version,
    license,
  }));
}

function copyPortolan(into) {
  cpSync(`${root}dist`, join(into, 'dist'), {
    recursive: true,
    filter: (source) => !/\/(\.compile-cache|\.built|proofs\.md)$/.test(source),
  });
  for (const name of ['package.json', 'LICENSE']) cpSync(`${root}${name}`, join(into, name));
}

// A rebuilt image of the same commit has the same time in it.
function commitTime() {
  const fixed = process.env.SOURCE_DATE_EPOCH;
  if (fixed !== undefined) return new Date(Number(fixed) * 1000);
  try {
    const text = execFileSync('git', ['-C', root, 'log', '-1', '--format=%ct'], { encoding: 'utf8' });
    return new Date(Number(text) * 1000);
  } catch {
    return new Date(0);
  }
}

function writeFile(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      arch: { type: 'string', default: 'amd64,arm64' },
      out: { type: 'string', default: `${root}image` },
      locked: { type: 'boolean', default: false },
      'update-lock': { type: 'boolean', default: false },
    },
  });
  const architectures = values.arch.split(',');
  const unknown = architectures.filter((architecture) => !['amd64', 'arm64'].includes(architecture));
  if (unknown.length > 0) {
    console.error(`portolan: no image for architecture ${unknown.join(', ')}; there are amd64 and arm64`);
    process.exit(2);
  }
  const digests = await buildImage({
    ...{ architectures, out: resolve(values.out), isLocked: values.locked, log: (text) => console.error(text) },
    ...(values['update-lock'] ? { newLock: lockFile } : {}),
  });
  for (const [name, digest] of Object.entries(digests)) console.log(`${name.padEnd(6)} ${digest}`);
}
