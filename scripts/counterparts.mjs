// The real programs that tests are held against. Installs those that Debian has, when it may (root and apt).
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';

const debianPackages = {
  etcd: 'etcd-server',
  dig: 'bind9-dnsutils',
  named: 'bind9',
  knotd: 'knot',
  nft: 'nftables',
  ip: 'iproute2',
  openssl: 'openssl',
  strace: 'strace',
};

export function installCounterparts() {
  const missing = Object.keys(debianPackages).filter((command) => findCommand(command) === undefined);
  if (missing.length === 0) return;
  const packages = missing.map((command) => debianPackages[command]);
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
