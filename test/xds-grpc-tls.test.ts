// A real gRPC client without a proxy that reaches the discovery server over TLS, with what `xds bootstrap` and `xds renew` wrote.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import { systemNamespace } from '../src/kube/objects/ours.ts';
import { issueProxy, openAuthority } from '../src/xds/identity/authority.ts';
import { identityText, pemTexts } from '../src/xds/identity/proxy-files.ts';
import { startApi } from './support/api-process.ts';
import { describeWith } from './support/counterparts.ts';
import { startBackend, startWithBootstrap } from './support/grpc-clients/grpc-clients.ts';
import { portolan, runPortolan } from './support/portolan.ts';
import { addImport, putEndpoints } from './support/xds.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const world = createRealWorld();
const service = { name: 'checkout', portName: 'grpc' };
const target = 'xds:///checkout.shop.svc.clusterset.local';

describeWith(['grpcio'], 'xds: gRPC over TLS', () => {
  test('xds bootstrap --role grpc --directory -> grpcio is served over mutual TLS; its certificate is renewed; another server is not believed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portolan-grpc-tls-'));
    closing.push(() => rmSync(folder, { recursive: true, force: true }));
    const api = await startApi({ data: join(folder, 'home') });
    closing.push(() => api.stop());
    const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig: api.kubeconfig });
    const client = createClient(world.network.http(access), { world, userAgent: 'test' });
    closing.push(() => client.close());
    await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    const backend = await startBackend('a', '127.0.0.1');
    closing.push(() => backend.stop());
    await addImport(client, { ...service, port: 8080 });
    await putEndpoints(client, service, 'east', { port: backend.port, addresses: ['127.0.0.1'] });
    const home = ['--kubeconfig', api.kubeconfig, '--cluster-id', 'east'];
    const port = await startXds([...home, '--virtual-port', '0', '--ingress-port', '0', '--listen', '127.0.0.1:0']);

    const directory = join(folder, 'client');
    const asked = ['xds', 'bootstrap', '--role', 'grpc', '--name', 'app', ...home, '--server', `127.0.0.1:${port}`];
    const without = await runPortolan(asked);
    expect([without.code, without.err]).toEqual([2, expect.stringMatching(/--socket .* or --directory and --server/)]);
    const made = await runPortolan([...asked, '--directory', directory]);
    expect([made.err, made.out]).toEqual(['', expect.stringContaining(`GRPC_XDS_BOOTSTRAP=${directory}/grpc.json`)]);
    const bootstrap = join(directory, 'grpc.json');
    expect(readFileSync(bootstrap, 'utf8')).not.toContain('PRIVATE KEY');
    for (const file of ['key.pem', 'identity.json']) expect(statSync(join(directory, file)).mode & 0o777).toBe(0o600);

    const caller = startWithBootstrap('python', bootstrap, target);
    closing.push(() => caller.stop());
    expect(await caller.calls(5)).toEqual({ a: 5 });

    // Two thirds of a certificate of two minutes are over at once: it is issued as of five minutes ago.
    const at = { world, home: client, namespace: systemNamespace, cluster: 'east' };
    const identity = { role: 'grpc', cluster: 'east', name: 'app' } as const;
    const short = issueProxy(at, await openAuthority(at), identity, 120_000);
    for (const { file, text } of [...pemTexts(short), { file: 'identity.json', text: identityText(short) }])
      writeFileSync(join(directory, file), text);
    const renewed = await runPortolan(['xds', 'renew', '--once', '--directory', directory]);
    expect(renewed).toMatchObject({ code: 0, err: '' });
    expect(readFileSync(join(directory, 'certificate.pem'), 'utf8')).not.toBe(short.certificate);
    const again = startWithBootstrap('python', bootstrap, target);
    closing.push(() => again.stop());
    expect(await again.calls(5)).toEqual({ a: 5 });

    const other = JSON.parse(readFileSync(bootstrap, 'utf8'));
    other.xds_servers[0].server_uri = `localhost:${port}`;
    const misled = join(directory, 'misled.json');
    writeFileSync(misled, JSON.stringify(other));
    const stranger = startWithBootstrap('python', misled, target);
    closing.push(() => stranger.stop());
    expect(Object.keys(await stranger.calls(1, { waits: false })).join()).toMatch(/^error: /);
  });
});

async function startXds(args: readonly string[]): Promise<string> {
  const child: ChildProcess = spawn(portolan, ['xds', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  closing.push(() => child.kill('SIGKILL'));
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (out += chunk));
  await expect.poll(() => out, { timeout: 60_000 }).toMatch(/ready \d+\nadmin /);
  return /ready (\d+)\n/.exec(out)![1]!;
}
