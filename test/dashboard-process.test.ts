// `portolan dashboard` as a process over a home with an audit log: who signs in brings a token, and nothing is ever written.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { runPortolan, startPortolan } from './support/portolan.ts';

describe('portolan dashboard', () => {
  const directory = mkdtempSync(`${tmpdir()}/portolan-dashboard-process-`);
  const audit = `${directory}/audit.log`;
  let home: ApiProcess;

  beforeAll(async () => {
    home = await startApi({ data: `${directory}/home`, args: ['--audit', audit] });
  });
  afterAll(async () => {
    await home.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('on an address that others reach, without TLS -> refused, with what to do', async () => {
    const args = ['dashboard', '--kubeconfig', home.kubeconfig, '--listen', '0.0.0.0:0'];
    const { code, err } = await runPortolan(args);
    expect(code).toBe(2);
    expect(err).toContain('tokens would cross the network in clear text; give --tls-certificate and --tls-key');
  });

  test('a token, a page, every question -> answered as its bearer, and the home saw reads alone', async () => {
    const { out } = await runPortolan(['dashboard', 'token', '--kubeconfig', home.kubeconfig, '--hours', '1']);
    const token = out.trim();
    expect(token.split('.')).toHaveLength(3);
    const process = startPortolan(['dashboard', '--kubeconfig', home.kubeconfig, '--listen', '127.0.0.1:0']);
    const url = await vi.waitFor(() => /^ready (\S+)$/m.exec(process.out())![1]!, { timeout: 20_000 });
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${url}/api/stream`, { headers });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toContain(
      '"bearer":"system:serviceaccount:portolan-system:portolan-dashboard"',
    );
    const questions = ['/api/service?key=shop/cart', '/api/figures', '/api/ask?cluster=x&name=a&type=A', '/api/demo'];
    const statuses = await Promise.all(
      questions.map(async (path) => (await fetch(`${url}${path}`, { headers })).status),
    );
    expect(statuses).toEqual([200, 200, 404, 405]);
    const order = await fetch(`${url}/api/demo?verb=break&cluster=x`, { headers, method: 'POST' });
    expect([order.status, await order.text()]).toEqual([404, expect.stringContaining('changes nothing')]);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await reader.cancel();
    await process.stop();
    const entries = readFileSync(audit, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { verb: string; user?: { username?: string } })
      .filter(({ user }) => user?.username?.endsWith(':portolan-dashboard'));
    expect(entries.length).toBeGreaterThan(10);
    expect(new Set(entries.map(({ verb }) => verb)).difference(new Set(['get', 'list', 'watch']))).toEqual(new Set());
  });
});
