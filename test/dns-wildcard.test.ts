// `portolan dns` on a wildcard address of a host with several addresses, in a network namespace: dig takes an answer only from
// the address it asked. Needs root.

import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { pathOf } from './support/counterparts.ts';
import { type DnsProcess, startDnsProcess, until } from './support/dns-process.ts';

const isRoot = process.getuid?.() === 0;
const missing = (['ip', 'dig'] as const).filter((name) => pathOf(name) === undefined);
const why = !isRoot ? ' (needs root)' : missing.length > 0 ? ` (needs ${missing.join(', ')})` : '';
const namespace = `pw${process.pid}`;

describe.skipIf(why !== '')(`dns on a wildcard address${why}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-wildcard-'));
  let dns: DnsProcess | undefined;
  const ip = (...args: string[]) => execFileSync(pathOf('ip')!, args, { stdio: 'pipe' });

  afterAll(async () => {
    await dns?.stop('SIGKILL');
    ip('netns', 'del', namespace);
    rmSync(directory, { recursive: true, force: true });
  });

  /** From another address than the kernel would answer with. */
  const dig = async (server: string, from: string, ...more: string[]) => {
    const args = ['netns', 'exec', namespace, pathOf('dig')!, '-b', from, `@${server}`, ...more];
    const words = ['+time=1', '+tries=1', '+noall', '+comments', 'no.svc.clusterset.local'];
    return promisify(execFile)(pathOf('ip')!, [...args, ...words]).then(
      ({ stdout }) => /status: (\w+)/.exec(stdout)?.[1] ?? 'nothing',
      () => 'nothing',
    );
  };

  test('each address answers from itself, over IPv4 and IPv6, and so does one that comes while it runs', async () => {
    ip('netns', 'add', namespace);
    ip('-n', namespace, 'link', 'set', 'lo', 'up');
    const add = (address: string) => ip('-n', namespace, 'addr', 'add', address, 'dev', 'lo');
    for (const address of ['10.99.0.1/32', '10.99.0.2/32', 'fd99::1/128', 'fd99::2/128']) add(address);
    const kubeconfig = join(directory, 'kubeconfig');
    // No server is there: the test looks at the source of the answer, and SERVFAIL is one.
    const server = 'http://127.0.0.1:1';
    const named = (kind: string, value: object) => [{ name: 'x', [kind]: value }];
    const contexts = named('context', { cluster: 'x', user: 'x' });
    const config = {
      clusters: named('cluster', { server }),
      users: named('user', {}),
      contexts,
      'current-context': 'x',
    };
    writeFileSync(kubeconfig, JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...config }));
    const within = ['ip', 'netns', 'exec', namespace];
    const flags = [
      '--cluster-id',
      'east',
      '--kubeconfig',
      kubeconfig,
      '--log-level',
      'error',
      '--client',
      '0.0.0.0/0',
      '::/0',
    ];
    dns = await startDnsProcess([...flags, '--listen', '[::]:53'], { within, listen: '0.0.0.0:53' });
    expect(await dig('10.99.0.2', '10.99.0.1')).toBe('SERVFAIL');
    expect(await dig('10.99.0.1', '10.99.0.2')).toBe('SERVFAIL');
    expect(await dig('fd99::2', 'fd99::1')).toBe('SERVFAIL');
    expect(await dig('10.99.0.2', '10.99.0.1', '+tcp')).toBe('SERVFAIL');
    add('10.99.0.3/32');
    await until('the new address answers', async () => (await dig('10.99.0.3', '10.99.0.1')) === 'SERVFAIL');
  });
});
