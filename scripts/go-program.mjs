// Programs for comparison that are built once by Go, where Go is installed, into a cache outside the repository. Nothing here
// depends on them: without Go the caller goes on without.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { findCommand } from './counterparts.mjs';

/** Its path, or why there is none. `module` is the path of its package without the version. */
export function findGoProgram({ name, module, version }) {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portolan', `${name}-${version}`);
  const path = join(cache, name);
  if (existsSync(path)) return { path };
  const go = findCommand('go') ?? ['/usr/local/go/bin/go'].find((each) => existsSync(each));
  if (go === undefined) return { why: 'Go is not installed' };
  mkdirSync(cache, { recursive: true });
  console.error(`portolan: building ${name} ${version}, once; this takes minutes`);
  const env = { ...process.env, GOBIN: cache, CGO_ENABLED: '0' };
  const { status } = spawnSync(go, ['install', `${module}@${version}`], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return status === 0 && existsSync(path) ? { path } : { why: `go install ${module}@${version} failed` };
}
