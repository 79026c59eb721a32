// CoreDNS, for comparison: built once by Go, where Go is installed, into a cache outside the repository. Nothing here
// depends on it: without Go the caller goes on without.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { findCommand } from './counterparts.mjs';

const corednsVersion = 'v1.15.0';
const modulePath = `github.com/coredns/coredns@${corednsVersion}`;

/** Its path, or why there is none. */
export function findCoredns() {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portolan', `coredns-${corednsVersion}`);
  const path = join(cache, 'coredns');
  if (existsSync(path)) return { path };
  const go = findCommand('go') ?? ['/usr/local/go/bin/go'].find((each) => existsSync(each));
  if (go === undefined) return { why: 'Go is not installed' };
  mkdirSync(cache, { recursive: true });
  console.error(`portolan: building CoreDNS ${corednsVersion}, once; this takes minutes`);
  const env = { ...process.env, GOBIN: cache, CGO_ENABLED: '0' };
  const { status } = spawnSync(go, ['install', modulePath], { env, stdio: ['ignore', 'inherit', 'inherit'] });
  return status === 0 && existsSync(path) ? { path } : { why: `go install ${modulePath} failed` };
}
