// `portolan agent` says ready when its home has answered, and meanwhile what it waits for.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { portolan } from './support/portolan.ts';

test('agent: nothing listens at the home -> it says that it waits, and ready once the home answers', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-agent-'));
  const { server: first, port } = await listen(0);
  await new Promise((done) => first.close(done));
  const kubeconfig = join(folder, 'home.kubeconfig');
  const cluster = { name: 'home', cluster: { server: `http://127.0.0.1:${port}` } };
  const context = { name: 'home', context: { cluster: 'home', user: 'home' } };
  const users = [{ name: 'home', user: { token: 'x' } }];
  writeFileSync(
    kubeconfig,
    JSON.stringify({ clusters: [cluster], contexts: [context], users, 'current-context': 'home' }),
  );
  const agent = spawn(portolan, ['agent', '--kubeconfig', kubeconfig, '--log-level', 'error'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = new Promise((resolve) => agent.once('exit', resolve));
  let said = '';
  agent.stdout.on('data', (chunk) => (said += chunk));
  let home: Server | undefined;
  try {
    await expect.poll(() => said, { timeout: 50_000 }).toMatch(/^admin http/m);
    expect(said).toMatch(new RegExp(`^waiting for http://127.0.0.1:${port}: `));
    expect(said).not.toMatch(/^ready/m);
    home = (await listen(port)).server;
    await expect.poll(() => said, { timeout: 50_000 }).toMatch(new RegExp(`^ready http://127.0.0.1:${port}$`, 'm'));
  } finally {
    agent.kill('SIGKILL');
    await ended;
    home?.closeAllConnections();
    home?.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

function listen(port: number): Promise<{ server: Server; port: number }> {
  const server = createServer((_request, response) => response.writeHead(404).end('{}'));
  return new Promise((resolve) =>
    server.listen(port, '127.0.0.1', () => resolve({ server, port: (server.address() as AddressInfo).port })),
  );
}
