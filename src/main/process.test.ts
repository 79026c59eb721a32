// What a process knows of where it runs.

import { hostname } from 'node:os';
import { Command } from 'commander';
import { expect, test, vi } from 'vitest';
import { silentLog } from '../base/log.ts';
import { ConnectionError } from '../base/real/connection-error.ts';
import { createRealWorld } from '../base/real/world.ts';
import { addProxyCommand, type ProxyFlags } from '../cli/roles/proxy.ts';
import { nodeName, whenHomeAnswers } from './process.ts';

test('node: a Pod knows the name of its node by NODE_NAME -> that, and not the name of the Pod', async () => {
  expect(nodeName({ NODE_NAME: 'worker-7' })).toBe('worker-7');
  expect(nodeName({ NODE_NAME: '' })).toBe(hostname());
  expect(nodeName({})).toBe(hostname());
  vi.stubEnv('NODE_NAME', 'worker-7');
  try {
    const flags = (...args: string[]) =>
      new Promise<ProxyFlags>((resolve) => {
        const program = new Command();
        addProxyCommand(program, async (given) => resolve(given));
        void program.parseAsync(['proxy', ...args], { from: 'user' });
      });
    expect((await flags()).node).toBe('worker-7');
    expect((await flags('--node', 'other')).node).toBe('other');
  } finally {
    vi.unstubAllEnvs();
  }
});

test('home: a certificate that is not trusted, or an error of our own -> not waited for', async () => {
  const deps = { world: createRealWorld(), log: silentLog };
  for (const error of [
    new ConnectionError('GET /', { code: 'CERT_HAS_EXPIRED' }),
    new Error('this cluster has no id yet'),
  ])
    await expect(whenHomeAnswers(deps, () => Promise.reject(error))).rejects.toBe(error);
});
