// The programs of a real cluster: those of Kubernetes in KUBEBUILDER_ASSETS, the rest as Debian packages them.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from '../../scripts/counterparts.mjs';

const ofKubernetes = [
  ...['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'],
  ...['kubelet', 'kube-proxy', 'kubectl'],
] as const;

/** The Debian package of each further program. */
const debianPackages = {
  containerd: 'containerd',
  ctr: 'containerd',
  runc: 'runc',
  nft: 'nftables',
  conntrack: 'conntrack',
  ip: 'iproute2',
  openssl: 'openssl',
  busybox: 'busybox-static',
  socat: 'socat',
  nc: 'netcat-openbsd',
  nslookup: 'bind9-dnsutils',
} as const;

const pluginFolder = '/usr/lib/cni';

export type Program = (typeof ofKubernetes)[number] | keyof typeof debianPackages;

/** Where a program is; empty if it is nowhere. */
export function pathOf(program: Program): string {
  const beside = join(process.env['KUBEBUILDER_ASSETS'] ?? '/nowhere', program);
  if ((ofKubernetes as readonly string[]).includes(program)) return existsSync(beside) ? beside : '';
  return findCommand(program) ?? '';
}

/** Why real nodes cannot run here; empty if they can. */
export function nodesMissing(): string {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs Linux and root';
  const missing = ofKubernetes.filter((name) => pathOf(name) === '');
  if (missing.length > 0) return `KUBEBUILDER_ASSETS needs ${missing.join(', ')}`;
  const packages = packagesMissing();
  return packages.length === 0 ? '' : `needs the Debian packages ${packages.join(' ')}`;
}

export function packagesMissing(): string[] {
  const missing = Object.entries(debianPackages).filter(([name]) => pathOf(name as Program) === '');
  const plugins = existsSync(join(pluginFolder, 'bridge')) ? [] : ['containernetworking-plugins'];
  return [...new Set([...missing.map(([, name]) => name), ...plugins])];
}

export { pluginFolder };
