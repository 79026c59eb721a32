// The gateway as the chart installs it, on real API servers: reported from its LoadBalancer Service, certified for the token of its
// Pod, configured by xds with the rights of its account. A network namespace stands for the Pod, and a real Envoy runs in it.

import { type ChildProcess, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { createRealWorld } from '../../src/base/real/world.ts';
import { gatewayName, gatewayReportKeys } from '../../src/clusterset/rules/networks/gateway-report.ts';
import { pairIn } from '../../src/kube/client/kept-authority.ts';
import {
  gatewayAuthoritySecret,
  peeringNamespace,
  proxyTokenAudience,
  xdsNamespace,
  xdsRootsName,
} from '../../src/kube/objects/ours.ts';
import { MeshCertificates } from '../../src/xds/sources/mesh-certificates.ts';
import { describeWith, pathOf } from '../support/counterparts.ts';
import { runPortolan } from '../support/portolan.ts';
import { spawnTied } from '../support/tied-process.ts';
import type { AuditLine } from './audit.ts';
import { addService, type FlowWorld, until } from './flows.ts';
import { grantedTo } from './granted.ts';
import { startFlowHome, system } from './homes.ts';
import { RunningParts } from './parts.ts';
import { unusedRights } from './unused-rights.ts';

const [outside, podAddress] = ['10.79.213.1', '10.79.213.2'];
const port = 15_443;
const isRoot = process.getuid?.() === 0;
const podName = 'portolan-gateway-1';

describeWith(['envoy', 'ip'], `the gateway of the chart${isRoot ? '' : ' (needs root)'}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-kubernetes-gateway-'));
  const parts = new RunningParts();
  const children: ChildProcess[] = [];
  const pod = `gw${process.pid}`;
  let world: FlowWorld;

  const ip = (line: string) => execFileSync('ip', line.split(' '), { stdio: ['ignore', 'pipe', 'pipe'] });
  const inPod = (program: string, args: readonly string[]) => {
    const child = spawnTied('ip', ['netns', 'exec', pod, program, ...args], { stdio: 'ignore' });
    children.push(child);
  };

  beforeAll(async () => {
    if (!isRoot) return;
    ip(`netns add ${pod}`);
    ip(`link add ${pod} type veth peer name eth0 netns ${pod}`);
    ip(`addr add ${outside}/24 dev ${pod}`);
    ip(`link set ${pod} up`);
    for (const line of ['link set lo up', `addr add ${podAddress}/24 dev eth0`, 'link set eth0 up'])
      ip(`-n ${pod} ${line}`);
    const [broker, east, west] = await Promise.all(
      ['broker', 'east', 'west'].map((name) => startFlowHome('real', name)),
    );
    world = { broker: broker!, east: east!, west: west!, parts, more: [] };
  });
  beforeEach(() => onTestFailed(() => console.error(parts.lastWords())));
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await parts.stop();
    await Promise.all([world?.broker, world?.east, world?.west].map((home) => home?.stop()));
    if (isRoot) ip(`netns del ${pod}`);
    rmSync(directory, { recursive: true, force: true });
  });

  test.skipIf(!isRoot)('install, join with a network, accept -> the address of its load balancer is used', async () => {
    const { broker, east, west } = world;
    await broker.type('broker init --clusterset prod --clusterset-range 127.77.0.0/16');
    for (const home of [east, west]) {
      const token = (await broker.type(`broker token ${home.name} --clusterset prod`)).trim().split(/\s+/).at(-1);
      await home.type(`join ${token} --network ${home.name}-net --pod-cidr 10.79.0.0/16`);
      const set = ['xds.enabled', 'envoy.enabled', 'gateway.enabled'].map((path) => `--set ${path}=true`);
      await home.type(`install ${set.join(' ')}`);
      if (home === west) leaveOtherRoots();
      parts.start(home, 'agent', ['agent']);
      const secrets = ['--secrets-namespace', xdsNamespace, '--peering-namespace', peeringNamespace];
      const xds = parts.start(home, 'xds', ['xds', '--listen', `${outside}:0`, ...secrets]);
      await until(`xds of ${home.name} is ready`, () => xds.said('ready') !== '');
      // The second one has the same Pods, so the first has to be in its own network.
      await until(`${home.name} is a member`, () => inBroker(home.name).length > 0);
      await broker.type(`broker accept ${home.name} --clusterset prod`);
    }
    const status = JSON.stringify({ status: { loadBalancer: { ingress: [{ ip: podAddress }] } } });
    const service = ['patch', 'service', 'portolan-gateway', '-n', system, '--subresource=status', '-p', status];
    east.kubectl(service);
    const reported = () => JSON.parse(inBroker('east')).status?.gateways ?? [];
    await until('east reports it', () => reported().length === 1);
    expect(reported()).toEqual([{ address: podAddress, port }]);
    await broker.type('broker accept east --clusterset prod');
    expect(JSON.parse(inBroker('east')).spec).toMatchObject({
      network: 'east-net',
      gatewayRanges: [`${podAddress}/32`],
    });
  });

  /** As after a restored home: what xds publishes is there, and is not its own. */
  function leaveOtherRoots(): void {
    const metadata = { name: gatewayName, namespace: system };
    const data = { [gatewayReportKeys.trustRoots]: 'other' };
    world.west.apply(
      { apiVersion: 'v1', kind: 'ConfigMap', metadata, data },
      {
        ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls', data: { 'tls.crt': '', 'tls.key': '' } },
        metadata: { name: gatewayAuthoritySecret, namespace: xdsNamespace },
      },
    );
  }

  /** The Cluster at the broker as JSON; empty if there is none. */
  function inBroker(name: string): string {
    try {
      return world.broker.kubectl(`get clusters.portolan.dev ${name} -n prod -o json`);
    } catch {
      return '';
    }
  }

  test.skipIf(!isRoot)(
    'the Pod of the Deployment -> a certificate for its token, by TokenReview; Envoy serves with it',
    async () => {
      const { east } = world;
      const { spec } = JSON.parse(east.kubectl(`get deployment portolan-gateway -n ${system} -o json`));
      const { metadata } = spec.template;
      east.apply({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...metadata, name: podName, namespace: system },
        spec: spec.template.spec,
      });
      const bound = `--audience ${proxyTokenAudience} --bound-object-kind Pod --bound-object-name ${podName}`;
      const [token, roots] = [join(directory, 'token'), join(directory, 'ca.crt')];
      writeFileSync(token, east.kubectl(`create token ${spec.template.spec.serviceAccountName} -n ${system} ${bound}`));
      const map = JSON.parse(east.kubectl(`get configmap ${xdsRootsName} -n ${system} -o json`));
      writeFileSync(roots, map.data['ca.crt']);
      // As the first container of the chart has them, but for paths and the name of the server.
      const { args } = spec.template.spec.initContainers[0] as { args: string[] };
      const own = new Map([
        ['$(POD_NAME)', podName],
        ['portolan-xds.portolan-system.svc:15010', `${outside}:${parts.of(east, 'xds')[0]!.said('ready')}`],
        ['/var/run/secrets/portolan-xds/token', token],
        ['/etc/portolan-xds/ca.crt', roots],
        ['/var/lib/portolan/proxy', join(directory, 'proxy')],
      ]);
      const words = args.map((word) => own.get(word) ?? word);
      const made = await runPortolan(words, { env: { ...process.env, KUBECONFIG: '/nonexistent', HOME: directory } });
      expect([made.code, made.err]).toEqual([0, '']);
      const envoy = JSON.parse(readFileSync(join(directory, 'proxy/envoy.json'), 'utf8'));
      expect(envoy.node.id).toBe(`gateway~east~${podName}`);
      inPod(pathOf('envoy')!, [
        '-c',
        join(directory, 'proxy/envoy.json'),
        '--concurrency',
        '1',
        '--use-dynamic-base-id',
      ]);
      const echo = `require('net').createServer((s) => s.on('error', () => {}).pipe(s)).listen(8080)`;
      inPod(process.execPath, ['-e', echo]);
    },
  );

  test.skipIf(!isRoot)('a node of the other network -> reaches what is exported, and nothing else', async () => {
    const { east, west } = world;
    for (const name of ['echo', 'inner']) addService(east, name, podAddress);
    west.kubectl('create namespace shop');
    await east.type('export shop/echo --wait --timeout 150');
    const address = () => east.kubectl('get serviceimport echo -n shop -o jsonpath={.spec.ips[0]}');
    await until('west reaches it', async () => (await asWest(`${address()}:80`)) === 200);
    const { clusterIP } = JSON.parse(east.kubectl('get service inner -n shop -o json')).spec;
    for (const authority of [`${clusterIP}:80`, `${podAddress}:8080`, 'inner.shop.svc.clusterset.local:80'])
      expect([authority, await asWest(authority)]).toEqual([authority, 403]);
    await east.type('unexport shop/echo');
    await until('it is refused', async () => (await asWest('echo.shop.svc.clusterset.local:80')) === 403);
  });

  /** Asks the gateway as a node of west does; its status. */
  function asWest(authority: string): Promise<number | string> {
    const root = JSON.parse(world.west.kubectl(`get secret ${gatewayAuthoritySecret} -n ${xdsNamespace} -o json`));
    const options = { only: 'client', commonName: 'test', lifetimeMs: 3_600_000, keptMax: 1 } as const;
    const pair = new MeshCertificates(createRealWorld(), options).of('spiffe://west.prod/node/test', pairIn(root)!);
    const tls = { cert: pair.certificate, key: pair.key, servername: 'west.prod', rejectUnauthorized: false };
    const session = connect(`https://${podAddress}:${port}`, tls);
    return new Promise<number | string>((resolve) => {
      session.on('error', (error) => resolve(error.message));
      const stream = session.request({ ':method': 'CONNECT', ':authority': authority }, { endStream: false });
      stream.once('response', (answer) => resolve(answer[':status'] ?? 'none'));
      stream.once('error', (error) => resolve(error.message));
    }).finally(() => session.destroy());
  }

  test.skipIf(!isRoot)(
    'all along -> no request of a part or member was refused; the account of the gateway has no rights',
    () => {
      for (const home of [world.broker, world.east, world.west])
        expect([home.name, home.refusals()]).toEqual([home.name, []]);
      const account = `system:serviceaccount:${system}:portolan-gateway`;
      expect(world.east.audit().filter(({ user }) => user.username === account)).toEqual([]);
      const answer = () => world.east.kubectl(`auth can-i list secrets -A --as ${account}`);
      expect(answer).toThrow();
      const xds = { namespace: system, name: 'portolan-xds' };
      const isXds = ({ user }: AuditLine) => user.username === `system:serviceaccount:${system}:${xds.name}`;
      const lines = [world.east, world.west].flatMap((home) => home.audit().filter(isXds));
      const unused = unusedRights(grantedTo(world.west, xds), lines, system);
      expect(unused.filter((text) => text.includes('portolan-gateway'))).toEqual([]);
    },
  );
});
