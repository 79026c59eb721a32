// The servers of the DNS benchmark, each on one core: ours, Knot, CoreDNS, and a socket that answers without looking. All
// have the same 1,000 names with three addresses each.

import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findCommand } from '../../scripts/counterparts.mjs';
import { freePort } from '../../test/support/free-port.ts';
import { untilAnswers } from './look-up.ts';
import { type Running, type Script, startScript, stop } from './process.ts';

export const names = 1000;
const core = '0';

export function startBareSocket(): Promise<Running> {
  return startScript([fileURLToPath(new URL('bare-socket.mjs', import.meta.url))], { core });
}

export function startOurs(setup: Record<string, unknown>): Promise<Script> {
  const script = fileURLToPath(new URL('our-server.mjs', import.meta.url));
  const dist = process.env['PORTOLAN_DIST'] ?? fileURLToPath(new URL('../../dist/src', import.meta.url));
  const { flags, env } = asUsersStartIt();
  return startScript(['--expose-gc', ...flags, script, JSON.stringify({ dist, services: names, ...setup })], {
    core,
    env,
  });
}

/** Node's flags and the settings of malloc that `bin/portolan` gives a resolver. */
function asUsersStartIt(): { readonly flags: readonly string[]; readonly env: Record<string, string> } {
  const launcher = readFileSync(new URL('../../bin/portolan', import.meta.url), 'utf8');
  const [, forDns = ''] = /= dns \]; then\n(.*?)\nfi/s.exec(launcher) ?? [];
  const settings = [...forDns.matchAll(/(MALLOC_\w+)="\$\{\w+:-(\d+)\}"/g)];
  const flags = `${forDns} ${launcher}`.match(/--(max-semi-space-size|heap-growing-percent)=\d+/g) ?? [];
  // The first of each kind: those for dns come before those for all.
  const first = flags.filter(
    (flag, index) => index === flags.findIndex((one) => one.split('=')[0] === flag.split('=')[0]),
  );
  if (settings.length === 0 || first.length !== 2)
    throw new Error('bin/portolan no longer starts dns as the bench reads it');
  return { flags: first, env: Object.fromEntries(settings.map(([, name, value]) => [name!, value!])) };
}

/** An authority for `clusterset.local`, and for `plain.test`, to which the others forward. */
export async function startKnot(directory: string): Promise<Running> {
  const port = await freePort();
  const zones = ['clusterset.local', 'plain.test'];
  for (const zone of zones) writeFileSync(join(directory, `${zone}.zone`), zoneText(zone));
  const config = `server:
  rundir: "${directory}"
  listen: 127.0.0.1@${port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: "${directory}"
template:
  - id: default
    storage: "${directory}"
    zonefile-load: whole
zone:
${zones.map((zone) => `  - domain: ${zone}`).join('\n')}
`;
  writeFileSync(join(directory, 'knot.conf'), config);
  return startProgram([findCommand('knotd')!, '-c', join(directory, 'knot.conf')], port);
}

function zoneText(zone: string): string {
  const prefix = zone === 'plain.test' ? '' : '.svc';
  const lines = [`$ORIGIN ${zone}.`, '$TTL 5', '@ SOA ns hostmaster 1 7200 1800 86400 5', '@ NS ns', 'ns A 127.0.0.1'];
  for (let i = 0; i < names; i++) {
    for (const first of [10, 11, 12]) lines.push(`svc-${i}.ns-${i % 100}${prefix} A ${first}.0.${i >> 8}.${i & 255}`);
  }
  if (zone === 'plain.test') lines.push('*.any A 192.0.2.1');
  return `${lines.join('\n')}\n`;
}

/** With its usual cache, forwarding everything. */
export async function startCoredns(directory: string, path: string, upstream: number): Promise<Running> {
  const port = await freePort();
  const corefile = join(directory, 'Corefile');
  const lines = ['bind 127.0.0.1', 'cache 3600', `forward . 127.0.0.1:${upstream}`];
  writeFileSync(corefile, `.:${port} {\n${lines.map((line) => `  ${line}\n`).join('')}}\n`);
  return startProgram([path, '-conf', corefile], port, { GOMAXPROCS: '1' });
}

async function startProgram(
  command: readonly string[],
  port: number,
  env: Record<string, string> = {},
): Promise<Running> {
  const child = spawn('taskset', ['-c', core, ...command], { stdio: 'ignore', env: { ...process.env, ...env } });
  await untilAnswers(port, 'svc-1.ns-1.plain.test');
  return { port, pid: child.pid!, stop: () => stop(child) };
}
