// `portolan up --gateway` as real processes on one machine: two clusters in networks of their own. A node of the other one
// asks the gateway for a service; the gateway is drained before the process ends. Without root.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRealWorld } from '../src/base/real/world.ts';
import type { ObservedFlow } from '../src/cli/traffic/flow-reader.ts';
import type { Cluster } from '../src/clusterset/kinds/cluster.ts';
import { pairIn } from '../src/kube/client/kept-authority.ts';
import { gatewayAuthoritySecret, systemNamespace } from '../src/kube/objects/ours.ts';
import type { Secret } from '../src/kube/objects/secret.ts';
import { MeshCertificates } from '../src/xds/sources/mesh-certificates.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { until } from './support/dns-process.ts';
import { takeLoopbackPart } from './support/loopback-part.ts';
import { portolan, runPortolan } from './support/portolan.ts';

const part = await takeLoopbackPart();
const gatewayOf = { east: `127.${part}.250.1`, west: `127.${part}.251.1` } as const;
type Id = keyof typeof gatewayOf;
const port = 15_443;

describeWith(['kubectl', 'envoy'], 'portolan up --gateway', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-up-gateway-'));
  const children: ChildProcess[] = [];
  const outputs = new Map<Id, { out: string; child: ChildProcess }>();
  const backend = createServer((socket) => void socket.on('error', () => {}).pipe(socket));
  let broker: ApiProcess;

  const kubeconfigOf = (name: string) => join(folder, name, 'admin.kubeconfig');
  const at = async (name: string, line: string) => {
    const { code, out, err } = await runPortolan([...line.split(' '), '--kubeconfig', kubeconfigOf(name)]);
    expect({ line, code, err: code === 0 ? '' : err }).toEqual({ line, code: 0, err: '' });
    return out.trim();
  };
  const kubectl = <T>(name: string, line: string) =>
    JSON.parse(
      execFileSync(pathOf('kubectl')!, ['--kubeconfig', kubeconfigOf(name), ...line.split(' '), '-o', 'json'], {
        encoding: 'utf8',
      }),
    ) as T;

  async function up(id: Id): Promise<void> {
    const token = await at('broker', `broker token ${id} --clusterset prod --allowed-range 127.${part}.240.0/20`);
    const words = ['--data', id, '--join', token, '--network', `${id}-net`, '--gateway', gatewayOf[id]];
    const more = ['--envoy', pathOf('envoy')!, '--dns-listen', '127.0.0.1:0', '--proxy', 'off', '--namespace', 'shop'];
    const child = spawn(portolan, ['up', ...words, ...more], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    const running = { out: '', child };
    outputs.set(id, running);
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => (running.out += chunk));
    await until(`up of ${id} is ready`, () => {
      if (child.exitCode !== null) throw new Error(`portolan up ended: ${running.out}`);
      return running.out.includes('Ctrl-C');
    });
    await at('broker', `broker accept ${id} --clusterset prod`);
  }

  /** A connection of a node of west to the gateway of east. */
  async function asWest(): Promise<ClientHttp2Session> {
    const root = kubectl<Secret>('west', `get secret ${gatewayAuthoritySecret} -n ${systemNamespace}`);
    const options = { only: 'client', commonName: 'test', lifetimeMs: 3_600_000, keptMax: 1 } as const;
    const identity = 'spiffe://west.prod/node/test';
    const { certificate, key } = new MeshCertificates(createRealWorld(), options).of(identity, pairIn(root)!);
    const tls = { cert: certificate, key, servername: 'west.prod', rejectUnauthorized: false };
    const session = connect(`https://${gatewayOf.east}:${port}`, tls);
    session.on('error', () => {});
    return session;
  }

  const statusOf = (session: ClientHttp2Session, headers: Record<string, string>) =>
    new Promise<number | string>((resolve) => {
      const stream = session.request(headers, { endStream: headers[':method'] === 'GET' });
      stream.once('response', (answer) => resolve(answer[':status'] ?? 'none'));
      stream.once('error', (error) => resolve(error.message));
      stream.once('close', () => resolve('closed'));
    });
  const health = (session: ClientHttp2Session) =>
    statusOf(session, { ':method': 'GET', ':path': '/healthz', ':authority': 'health' });

  const authority = () => {
    const found = kubectl<{ spec: { ips: string[] } }>('east', 'get serviceimport echo -n shop');
    return `${found.spec.ips[0]}:7`;
  };

  beforeAll(async () => {
    broker = await startApi({ data: join(folder, 'broker') });
    await at('broker', `broker init --clusterset prod --clusterset-range 127.${part}.0.0/17`);
    await new Promise<void>((resolve) => backend.listen(0, `127.${part}.252.1`, resolve));
    await up('east');
    await up('west');
    const { port: target } = backend.address() as { port: number };
    await at('east', `register shop/echo --address 127.${part}.252.1 --port 7:${target} --export --wait`);
  });

  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    // Envoys are children of `up`, which had no time to end them.
    for (const id of ['east', 'west'])
      for (const line of execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n'))
        if (line.includes(`envoy -c ${join(folder, id)}`)) process.kill(Number(line.trim().split(' ')[0]), 'SIGKILL');
    backend.close();
    await broker?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('two clusters in networks of their own -> their gateways are reported and accepted, and status shows them', async () => {
    for (const id of ['east', 'west'] as const) {
      const { spec, status } = kubectl<Cluster>('broker', `get clusters.portolan.dev ${id} -n prod`);
      expect(spec).toMatchObject({ network: `${id}-net`, gatewayRanges: [`${gatewayOf[id]}/32`] });
      expect(status?.gateways).toEqual([{ address: gatewayOf[id], port }]);
      expect(outputs.get(id)!.out).toContain(`gateway  ${gatewayOf[id]}:${port}, configured by`);
    }
    const status = async () => (await runPortolan(['status', '--kubeconfig', kubeconfigOf('east')])).out;
    const reach = `reach: west through gateway ${gatewayOf.west}:${port} of network west-net\n`;
    await expect.poll(status, { timeout: 60_000, interval: 500 }).toContain(reach);
  });

  test('a node of the other network -> gets what is exported; told to end -> the gateway fails its checks first and serves what is open', async () => {
    await expect
      .poll(
        async () => {
          const session = await asWest();
          const status = await statusOf(session, { ':method': 'CONNECT', ':authority': authority() });
          // An Envoy tells of a stream when it has ended.
          session.destroy();
          return status;
        },
        { timeout: 60_000, interval: 500 },
      )
      .toBe(200);
    const session = await asWest();
    const stream = session.request({ ':method': 'CONNECT', ':authority': authority() }, { endStream: false });
    let echoed = '';
    stream.setEncoding('utf8').on('data', (chunk: string) => (echoed += chunk));
    stream.write('before ');
    await until('the stream answers', () => echoed === 'before ');
    expect(await statusOf(session, { ':method': 'CONNECT', ':authority': '127.0.0.1:80' })).toBe(403);
    expect(await health(session)).toBe(200);
    const observed = async () => {
      const words = ['observe', '--kubeconfig', kubeconfigOf('east'), '-o', 'json'];
      const flows = JSON.parse((await runPortolan(words)).out) as ObservedFlow[];
      return flows.map(
        (flow) => `${flow.from} ${flow.service} ${flow.outcome} ${flow.status} ${flow.way} ${flow.seenBy}`,
      );
    };
    const answered = 'west shop/echo answered 200 gateway envoy';
    await expect.poll(observed, { timeout: 30_000, interval: 500 }).toContain(answered);
    const { child } = outputs.get('east')!;
    const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    child.kill('SIGTERM');
    await expect.poll(() => health(session), { timeout: 9000, interval: 100 }).toBe(503);
    stream.write('after');
    await until('the open stream goes on', () => echoed === 'before after');
    stream.end();
    session.close();
    expect(await ended).toBe(0);
  });

  test('bad flags -> refused by name before anything runs; no clusterset -> said what to add', async () => {
    const refused = (words: readonly string[]) => runPortolan(['up', '--data', join(folder, 'x'), ...words]);
    expect(await refused(['--gateway', 'gate.example:15443'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--gateway "gate.example:15443": write ADDRESS:PORT with an IP address'),
    });
    expect(await refused(['--network', 'No Name'])).toMatchObject({ code: 2 });
    const alone = await refused(['--gateway', '127.0.0.1', '--dns-listen', '127.0.0.1:0', '--dashboard', 'none']);
    expect(alone).toMatchObject({ code: 1, err: expect.stringContaining('in no clusterset yet; add --join TOKEN') });
  });
});
