// The command line beyond single commands: exit codes by their table, commands that only look, and what shells complete.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { version } from '../src/base/version.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { asArgs, until } from './support/kubectl.ts';
import { run, runPortolan, startPortolan } from './support/portolan.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-line-'));
let api: ApiProcess;
beforeAll(async () => {
  api = await startApi({ data: join(directory, 'east') });
});
afterAll(async () => {
  await api?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const onHome = (line: string) => runPortolan([...asArgs(line), '--kubeconfig', api.kubeconfig]);
const nowhere = { PATH: process.env['PATH'], HOME: directory };

test('version without any home -> that of this program; of a home that does not answer -> that, and why', async () => {
  expect(await runPortolan(['version'], { env: nowhere })).toEqual({ code: 0, out: `client ${version}\n`, err: '' });
  const dead = join(directory, 'dead.kubeconfig');
  writeFileSync(
    dead,
    JSON.stringify({
      'current-context': 'a',
      contexts: [{ name: 'a', context: { cluster: 'a' } }],
      clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:1' } }],
    }),
  );
  const { code, out, err } = await runPortolan(['version', '--kubeconfig', dead]);
  expect([code, out]).toEqual([6, `client ${version}\n`]);
  expect(err).toMatch(/^portolan: .*nothing listens there/);
});

describe('exit codes', () => {
  beforeAll(async () => {
    expect((await onHome('broker init --clusterset prod')).code).toBe(0);
  });

  test.each([
    ['status --kubeconfig /nowhere/kubeconfig', 2, 'kubeconfig /nowhere/kubeconfig: no such file'],
    ['status', 2, 'no kubeconfig: '],
    ['broker token', 2, '(portolan broker token --help lists its options)'],
    ['broker nonsense', 2, '(portolan broker --help lists its options)'],
  ])('%s -> %i', async (line, code, text) => {
    const found = await runPortolan(asArgs(line), { env: nowhere });
    expect([found.code, found.err]).toEqual([code, expect.stringContaining(text)]);
  });

  test.each([
    ['status --context west', 2, 'there is no "west"'],
    ['broker token east', 4, 'clusterset clusterset: this broker has prod; give --clusterset prod'],
    ['broker token east --clusterset other', 4, 'give --clusterset prod'],
    ['broker remove east', 4, 'give --clusterset prod'],
    ['broker accept east', 4, 'give --clusterset prod'],
    ['drain east', 4, 'give --clusterset prod'],
    ['drain east --clusterset prod', 4, 'this home has no Cluster east of clusterset prod'],
    ['federation create world --nameserver 127.0.0.1', 4, 'give --clusterset prod'],
  ])('%s -> %i', async (line, code, text) => {
    const found = await onHome(line);
    expect([found.code, found.err]).toEqual([code, expect.stringContaining(text)]);
  });
});

describe('a member', () => {
  const typed = async (line: string) => {
    const { code, out, err } = await onHome(line);
    expect([line, code, code === 0 ? '' : err]).toEqual([line, 0, '']);
    return out;
  };

  test('doctor --before join -> what joining would refuse, and the token can be used afterwards', async () => {
    const file = join(directory, 'token');
    writeFileSync(file, (await typed('broker token east --clusterset prod')).trim());
    expect(await typed(`doctor --before join --token-file ${file}`)).toContain(
      'this cluster can join clusterset prod as east',
    );
    expect(await onHome('doctor --before join')).toMatchObject({ code: 2 });
    await typed(`join --token-file ${file}`);
    const used = await onHome(`doctor --before join --token-file ${file}`);
    expect([used.code, used.err]).toEqual([5, expect.stringContaining('it was used already or has expired')]);
  });

  test('doctor --before install -> what installing would refuse, and nothing is changed', async () => {
    const { code, err } = await onHome('doctor --before install');
    expect([code, err]).toEqual([5, expect.stringContaining('it stores Pods and does not run them')]);
    const wrong = await onHome('doctor --before install --set dns.clusterId=west');
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('this cluster joined as east')]);
    expect(await typed('doctor --before install --set rightsOnly=true')).toContain('nothing stands in the way');
  });

  test('register --headless -> a Service without an address; an existing one with an address -> refused', async () => {
    const kubectl = (...args: string[]) => run('kubectl', ['--kubeconfig', api.kubeconfig, ...args]);
    await kubectl('create', 'namespace', 'shop');
    await typed('register shop/db --address 127.0.0.1 --port 5432 --headless');
    expect((await kubectl('get', 'service', 'db', '-n', 'shop', '-o', 'jsonpath={.spec.clusterIP}')).out).toBe('None');
    await typed('register shop/web --address 127.0.0.1 --port 80');
    const refused = await onHome('register shop/web --address 127.0.0.2 --port 80 --headless');
    expect(refused.err).toContain('leave --headless out');
  });

  test('export --dry-run -> said, and nothing is exported', async () => {
    expect(await typed('export shop/web --dry-run')).toContain('shop/web would be exported');
    expect(await typed('unexport shop/web')).toContain('shop/web is not exported');
    await typed('export shop/web');
    expect(await typed('export shop/web --dry-run')).toContain('shop/web is exported already');
    expect(await typed('unexport shop/wbe')).toContain('did you mean shop/web?');
  });

  test('export of a Service that does not exist -> written, and no word of being exported', async () => {
    const until = 'until a Service of that name exists';
    expect(await typed('export shop/later --dry-run')).toContain(
      'shop/later would be exported, once a Service of that',
    );
    const { code, out } = await onHome('export shop/later');
    expect([code, out]).toEqual([0, expect.stringContaining(`the export is written; nothing is exported ${until}`)]);
    expect(out).not.toContain('shop/later is exported');
    expect(await typed('export shop/later')).toContain(`the export is written already; nothing is exported ${until}`);
    await typed('unexport shop/later');
  });

  test('status --watch -> shown again and again, in which addresses are wide', async () => {
    const watching = startPortolan(['status', '--watch', '-o', 'wide', '--kubeconfig', api.kubeconfig]);
    try {
      await until(() => (watching.out().match(/again every 2 s/g)?.length ?? 0) > 1);
    } finally {
      await watching.stop();
    }
    expect(watching.out()).not.toContain('\x1b');
  });

  test('completion -> contexts, values of options and services', async () => {
    const { out: script } = await runPortolan(['completion', 'bash']);
    const words = (typed: string[]) =>
      `COMP_WORDS=(portolan ${typed.join(' ')}); COMP_CWORD=${typed.length}; _portolan; echo "\${COMPREPLY[*]}"`;
    const lines = [
      ...[words(['status', '--context', 'ea']), words(['status', '-o', 'js'])],
      ...[words(['explain', 'shop/w']), words(['agent', '--log-level', 'de'])],
    ];
    const env = { ...process.env, KUBECONFIG: api.kubeconfig, PATH: `${process.cwd()}/bin:${process.env['PATH']}` };
    const { out } = await run('bash', ['-c', `${script}\n${lines.join('\n')}`], { env });
    expect(out.trim().split('\n')).toEqual(['east', 'json', 'shop/web', 'debug']);
  });
});
