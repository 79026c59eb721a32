// systemd-resolved, unpacked from Debian's package and never installed: its scripts would replace /etc/resolv.conf.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { findCommand } from './counterparts.mjs';

const folder = '/var/cache/portolan/systemd-resolved';
const places = ['/usr/lib/systemd/systemd-resolved', `${folder}/lib/systemd/systemd-resolved`];

/** Its path, or why there is none. */
export function findResolved() {
  if (process.getuid?.() !== 0) return { why: 'needs root, for a network namespace' };
  const missing = ['unshare', 'mount', 'ip', 'dig'].filter((command) => findCommand(command) === undefined);
  if (missing.length > 0) return { why: `needs ${missing.join(', ')}` };
  if (!places.some((path) => existsSync(path))) unpack();
  const path = places.find((place) => existsSync(place));
  return path === undefined ? { why: 'this machine has none, and it could not be downloaded by apt-get' } : { path };
}

// In two steps, so that an interrupted download is never taken for the whole.
function unpack() {
  const target = `${folder}.${process.pid}`;
  mkdirSync(target, { recursive: true });
  const run = (command, args) => spawnSync(command, args, { cwd: target, stdio: ['ignore', 'ignore', 'inherit'] });
  run('apt-get', ['-qq', '-o', 'APT::Sandbox::User=root', 'download', 'systemd-resolved']);
  const file = readdirSync(target).find((name) => name.endsWith('.deb'));
  if (file !== undefined && run('dpkg-deb', ['-x', file, 'content']).status === 0) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(dirname(folder), { recursive: true });
    renameSync(`${target}/content`, folder);
  }
  rmSync(target, { recursive: true, force: true });
}
