// The broker's manifests with kubectl, and the commands as processes: what a person has on another machine.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everything, makeNamespace, TestClusterSet, type TestHome, type } from './support/clusterset.ts';
import { describeWith, pathOf } from './support/counterparts.ts';

const set = new TestClusterSet();
const portolan = fileURLToPath(new URL('../bin/portolan', import.meta.url));
let broker: TestHome;
let east: TestHome;

beforeAll(async () => {
  broker = await set.startHome('broker');
  east = await set.startHome('east');
});
afterAll(() => set.stop());

async function run(
  program: string,
  args: readonly string[],
  input = '',
): Promise<{ code: number; out: string; errors: string }> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let out = '';
  let errors = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  child.stdin.end(input);
  const code = await new Promise<number>((resolve) => child.once('close', (ended) => resolve(ended ?? -1)));
  return { code, out, errors };
}

describeWith(['kubectl'], 'manifests', () => {
  const kubectl = (args: readonly string[], input = '') =>
    run(pathOf('kubectl')!, ['--kubeconfig', broker.kubeconfig, ...args], input);

  test('manifests: what broker init prints, given to kubectl -> the layout that broker init itself makes [002-07]', async () => {
    const { out } = await run(portolan, ['broker', 'init', '--print']);
    const applied = await kubectl(['apply', '-f', '-'], out);
    expect(applied.errors).toBe('');
    expect(applied.out).toContain('clusterset.portolan.dev/clusterset created');
    const { lines } = await type(`broker init --kubeconfig ${broker.kubeconfig}`);
    expect(lines[0]).toBe('clusterset clusterset is laid out already');
  });

  test('manifests: deploy/manifests/broker.yaml and agent.yaml -> accepted as they are', async () => {
    for (const name of ['broker.yaml', 'agent.yaml']) {
      const text = readFileSync(new URL(`../deploy/manifests/${name}`, import.meta.url), 'utf8');
      const applied = await kubectl(['apply', '-f', '-'], text);
      expect([applied.code, applied.errors.replace(/^Warning:.*\n/gm, '')]).toEqual([0, '']);
    }
    const { lines } = await type(`broker init --kubeconfig ${broker.kubeconfig}`);
    expect(lines[0]).toBe('clusterset clusterset is laid out already');
  });

  test('manifests: member.yaml as it is -> it stays, and broker token adds the owners and the secret of the token', async () => {
    const text = readFileSync(new URL('../deploy/manifests/member.yaml', import.meta.url), 'utf8');
    const applied = await kubectl(['apply', '-f', '-'], text);
    expect(applied.errors).toBe('');
    const before = [...(await everything(broker.client)).keys()];
    // Garbage would be collected within seconds.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect([...(await everything(broker.client)).keys()]).toEqual(before);
    await type(`broker token east --kubeconfig ${broker.kubeconfig}`);
    const after = [...(await everything(broker.client)).keys()];
    expect(before.filter((name) => !after.includes(name))).toEqual([]);
    const made = after.filter((name) => !before.includes(name) && !name.startsWith('ResourceQuota '));
    expect(made).toEqual(['Secret clusterset-members/portolan-join.east']);
  });
});

describe('commands as processes', () => {
  test('portolan: join, plan, an error -> its exit codes; errors go to standard error in one line', async () => {
    await type(`broker init --kubeconfig ${broker.kubeconfig}`);
    const args = ['--kubeconfig', east.kubeconfig];
    const token = await run(portolan, ['broker', 'token', 'east', '--kubeconfig', broker.kubeconfig]);
    expect((await run(portolan, ['join', token.out.trim(), ...args])).code).toBe(0);
    await makeNamespace(east.client, 'shop');
    const missing =
      'apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {name: a, namespace: shop}\n';
    expect((await run(portolan, ['plan', '-f', '-', ...args], missing)).code).toBe(7);
    const failed = await run(portolan, ['explain', 'shop/a', ...args]);
    expect([failed.code, failed.out]).toEqual([4, '']);
    expect(failed.errors).toBe('portolan: service shop/a: no cluster of the clusterset exports it\n');
  });

  test.each([
    'broker init',
    'broker token',
    'join',
    'leave',
    'export',
    'unexport',
    'status',
    'explain',
    'plan',
    'agent',
  ])('portolan %s --help -> says what it is for, with an example', async (verb) => {
    const { code, out } = await run(portolan, [...verb.split(' '), '--help']);
    expect(code).toBe(0);
    expect(out).toMatch(/Examples?:\n {2}.*portolan /);
  });
});
