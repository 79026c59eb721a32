// `portolan up` as real processes on one machine: it joins by file and by standard input, serves names and clusterset
// addresses, starts again with the same command, ends cleanly, and ends when a part of it dies. Kubeconfigs of homes merge.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseJoinToken } from '../src/clusterset/membership/join-token.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { takeLoopbackPart } from './support/loopback-part.ts';
import { run, runPortolan } from './support/portolan.ts';
import { startUp, type UpProcess } from './support/up-process.ts';

const part = await takeLoopbackPart();
const range = `127.${part}.0.0/17`;

describeWith(['kubectl', 'dig', 'envoy'], 'portolan up', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-up-'));
  const stops: (() => Promise<unknown>)[] = [];
  let broker: ApiProcess;
  const kubeconfigOf = (name: string) => join(folder, name, 'admin.kubeconfig');
  const backend = createServer((_request, response) => void response.end('checkout in east\n'));

  const up = (args: readonly string[], input = '') =>
    startUp(args, { cwd: folder, input, onStart: (stop) => void stops.push(stop) });

  const at = (name: string, line: string) =>
    runPortolan([...line.split(' '), '--kubeconfig', kubeconfigOf(name)], { cwd: folder });

  async function token(id: string, net: number): Promise<string> {
    const { code, out, err } = await at(
      'broker',
      `broker token ${id} --clusterset prod --allowed-range 127.${part}.${net}.0/24`,
    );
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(err).toContain('warning: other machines cannot reach https://127.0.0.1:');
    return out;
  }

  beforeAll(async () => {
    broker = await startApi({ data: join(folder, 'broker') });
    stops.push(() => broker.stop());
    const { code, err } = await at('broker', `broker init --clusterset prod --clusterset-range ${range}`);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    await new Promise<void>((resolve) => backend.listen(0, `127.${part}.255.1`, resolve));
  });
  afterAll(async () => {
    backend.close();
    for (const stop of stops.splice(0).reverse()) await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const westArgs = ['--data', 'west', '--join', '-', '--dns-listen', '127.0.0.1:0', '--namespace', 'shop'];
  let east: UpProcess;
  let west: UpProcess;
  let westToken = '';

  test('join by a file and by standard input -> a name of east gets an answer and a connection in west', async () => {
    writeFileSync(join(folder, 'east.token'), await token('east', 255));
    westToken = await token('west', 254);
    const eastArgs = ['--data', 'east', '--join', 'east.token', '--dns-listen', '127.0.0.1:0', '--proxy', 'off'];
    [east, west] = await Promise.all([up([...eastArgs, '--namespace', 'shop']), up(westArgs, westToken)]);
    for (const { out } of [east, west]) expect(out()).toMatch(/^home .*\njoin .*in clusterset prod\nagent .*\ndns /m);
    const { port } = backend.address() as AddressInfo;
    const address = `--address 127.${part}.255.1 --port 8080:${port}`;
    const registered = await at('east', `register shop/checkout ${address} --export --wait`);
    expect(registered).toMatchObject({ code: 0, err: '' });
    const dns = /^dns +127\.0\.0\.1:(\d+)/m.exec(west.out())![1]!;
    const ask = ['@127.0.0.1', '-p', dns, '+short', 'checkout.shop.svc.clusterset.local'];
    const resolved = () => run(pathOf('dig')!, ask).then(({ out }) => out.trim());
    await expect.poll(resolved, { timeout: 30_000 }).toMatch(new RegExp(`^127\\.${part}\\.`));
    const url = `http://${await resolved()}:8080/`;
    const get = () => fetch(url).then((response) => response.text());
    await expect.poll(() => get().catch(String), { timeout: 30_000 }).toBe('checkout in east\n');
    expect(west.out()).toContain('proxy    userspace');
  });

  test('status against it -> all parts report, exit code 0', async () => {
    const { code, out } = await at('west', 'status');
    expect(code).toBe(0);
    expect(out).toMatch(/^agent .*reporting/m);
    expect(out).toMatch(/^dns .*reporting/m);
    expect(out).toMatch(/^proxy .*userspace .*reporting/m);
  });

  test('dig with a kubeconfig -> asks the resolver through its home, no admin URL needed', async () => {
    const found = await at('west', 'dig checkout.shop.svc.clusterset.local -o json');
    expect(found).toMatchObject({ code: 0, err: '' });
    const { records } = JSON.parse(found.out) as { records: { data: string }[] };
    expect(JSON.stringify(records)).toContain(`127.${part}.`);
    const none = await at('broker', 'dig checkout.shop.svc.clusterset.local');
    expect(none.code).toBe(4);
    expect(none.err).toContain('no resolver reports at');
  });

  test('kubeconfigs of homes -> named after their homes, and merged by kubectl', async () => {
    const env = { ...process.env, KUBECONFIG: `${kubeconfigOf('east')}:${kubeconfigOf('west')}` };
    const kubectl = (line: string) => run(pathOf('kubectl')!, line.split(' '), { env });
    expect((await kubectl('config get-contexts -o name')).out).toBe('east\nwest\n');
    const uids = await Promise.all(
      ['east', 'west'].map((name) =>
        kubectl(`--context ${name} get namespace kube-system -o jsonpath={.metadata.uid}`),
      ),
    );
    expect(uids.map(({ code, err }) => [code, err])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    expect(new Set(uids.map(({ out }) => out)).size).toBe(2);
    // Our own commands read merged files too.
    const status = await runPortolan(['status', '--context', 'west'], { env });
    expect(status.out).toContain('this cluster is west');
  });

  test('stopped and started by the same command -> exit code 0, still the same member at the same address', async () => {
    const server = /server: (\S+)/.exec(readFileSync(kubeconfigOf('west'), 'utf8'))![1];
    expect(await west.stop()).toBe(0);
    expect(west.err()).toBe('');
    west = await up(westArgs, westToken);
    // Its port is the one that others know.
    expect(readFileSync(kubeconfigOf('west'), 'utf8')).toContain(`server: ${server}\n`);
    expect(west.out()).toContain('join     this cluster is west in clusterset prod already');
  });

  test('changes with --wait -> each returns when the change has taken effect, also leaving and joining again', async () => {
    const last = async (name: string, line: string) => {
      const { code, out, err } = await at(name, line);
      expect({ line, code, err }).toEqual({ line, code: 0, err: '' });
      return out.trim().split('\n').at(-1);
    };
    expect(await last('broker', 'broker init --clusterset prod --wait')).toBe('clusterset prod is served');
    expect(await last('east', 'drain shop/checkout --wait')).toBe('the broker has it: shop/checkout in cluster east');
    expect(await last('east', 'drain shop/checkout --undo --wait')).toMatch(/^the broker has it/);
    expect(await last('east', 'unexport shop/checkout --wait')).toBe('shop/checkout is withdrawn');
    const address = `127.${part}.255.1`;
    expect(await last('east', `deregister shop/checkout --address ${address} --wait`)).toBe(
      `${address} is no endpoint of shop/checkout`,
    );
    expect(await last('east', 'leave --wait')).toBe('no import is left');
    const again = await token('east', 255);
    expect(await last('east', `join ${again.trim()} --wait`)).toBe('the agent of cluster east works');
    const late = await at('east', 'export shop/nosuch --wait --timeout 1');
    expect(late.code).toBe(7);
    expect(late.err).toMatch(/^portolan: export shop\/nosuch: not done after 1 s: .*nosuch/);
  });

  test('an Envoy beside a home in no clusterset -> it is said that nothing is redirected to it, also where a name resolves; it dies -> said, and the process ends with an error', async () => {
    const envoy = await up(['--data', 'lone', '--dns-listen', '127.0.0.1:0', '--envoy', pathOf('envoy')!]);
    expect(envoy.out()).toMatch(/^ *envoy +.*not redirected to it yet.*portolan proxy --envoy/m);
    const mongo = `{ apiVersion: portolan.dev/v1alpha1, kind: MeshExternalService, metadata: { name: mongo, namespace: portolan-system }, spec: { match: [{ type: InternalVIP, value: mongo.ext.example, port: 27017, protocol: tcp }], destination: { type: Regular, endpoints: [{ address: 127.0.0.1 }] } } }`;
    const kubectl = (args: string[], input = '') =>
      execFileSync(pathOf('kubectl')!, ['--kubeconfig', kubeconfigOf('lone'), ...args], { input, encoding: 'utf8' });
    kubectl(['create', '-f', '-'], mongo);
    const ready = '{.status.conditions[?(@.type=="Ready")].reason}';
    const reason = () => kubectl(['get', 'mes', 'mongo', '-n', 'portolan-system', '-o', `jsonpath=${ready}`]);
    await expect.poll(reason, { timeout: 30_000, interval: 500 }).toBe('NotRedirected');
    expect((await at('lone', 'doctor')).out).toMatch(/^PTL0904 warning .*NotRedirected/m);
    const children = execFileSync('ps', ['--ppid', String(envoy.child.pid), '-o', 'pid=,comm='], { encoding: 'utf8' });
    const pid = /(\d+) envoy/.exec(children)?.[1];
    process.kill(Number(pid), 'SIGKILL');
    expect(await envoy.ended).toBe(1);
    expect(envoy.err()).toMatch(/portolan: .*envoy: it ended with SIGKILL; start portolan up again/);
  });

  test('a token that is cut, or for a file that is not there -> usage or failure with the next step, nothing runs', async () => {
    const cut = await runPortolan(['up', '--data', join(folder, 'x'), '--join', westToken.slice(0, 80)]);
    expect(cut.code).not.toBe(0);
    expect(cut.err).toContain('it is not whole; copy all of what portolan broker token printed');
    const absent = await runPortolan(['up', '--data', join(folder, 'x'), '--join', 'no-such-file']);
    expect(absent).toMatchObject({ code: 2, err: 'portolan: --join no-such-file: no such file\n' });
  });

  test('--advertise -> kubeconfig and tokens carry it, without a warning', async () => {
    const home = await startApi({
      data: join(folder, 'away'),
      args: ['--advertise', 'localhost.example', '--clusterset', 'set'],
    });
    stops.push(() => home.stop());
    expect(readFileSync(kubeconfigOf('away'), 'utf8')).toContain(`server: https://localhost.example:${home.port}`);
    const direct = ['--server', `https://127.0.0.1:${home.port}`];
    const made = await run(pathOf('kubectl')!, [
      ...['--kubeconfig', kubeconfigOf('away'), ...direct, '--tls-server-name', 'localhost.example'],
      ...['get', 'clusterset', '-n', 'set', '-o', 'name'],
    ]);
    expect(made).toMatchObject({ code: 0, out: 'clusterset.portolan.dev/set\n' });
    const { server } = parseJoinToken(westToken);
    expect(server).toBe(`https://127.0.0.1:${broker.port}`);
  });
});
