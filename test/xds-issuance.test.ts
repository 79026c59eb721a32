// The first certificate of an Envoy in a Pod, by processes: `portolan xds bootstrap` with nothing but a token of its Pod and the
// published roots.

import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { type ConfigMap, configMapType } from '../src/kube/objects/config-map.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import type { AnyObject, KubernetesObject, ResourceType } from '../src/kube/objects/object.ts';
import { xdsRootsName } from '../src/kube/objects/ours.ts';
import { serviceAccountType } from '../src/kube/objects/rbac.ts';
import { parseIdentity } from '../src/xds/identity/proxy-files.ts';
import { identityIn } from '../src/xds/identity/proxy-identity.ts';
import { startApi } from './support/api-process.ts';
import { portolan, runPortolan } from './support/portolan.ts';

const namespace = 'portolan-system';
const podType: ResourceType = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', isNamespaced: true };
const folder = mkdtempSync(join(tmpdir(), 'portolan-issuance-'));
const closing: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
const authorityFile = join(folder, 'ca.crt');
let client: Client;
let server: string;
let kubeconfig: string;

beforeAll(async () => {
  const api = await startApi({ data: join(folder, 'home') });
  closing.push(() => api.stop());
  const world = createRealWorld();
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig: api.kubeconfig });
  client = createClient(world.network.http(access), { world, userAgent: 'test' });
  closing.push(() => client.close());
  await client
    .create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
    .catch(() => {});
  for (const name of ['portolan-envoy', 'portolan-ingress', 'portolan-dns'])
    await client.create(serviceAccountType, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace },
    });
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  for (const name of ['web', 'db'])
    await client.create(serviceAccountType, {
      ...{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'shop' } },
    });
  kubeconfig = api.kubeconfig;
  const words = ['--kubeconfig', kubeconfig, '--cluster-id', 'east', '--listen', '127.0.0.1:0'];
  server = await startXds([...words, '--sidecar-account', 'shop/web']);
  const roots = await client.get<ConfigMap>(configMapType, { namespace, name: xdsRootsName });
  writeFileSync(authorityFile, roots.data!['ca.crt']!);
}, 120_000);
afterAll(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function startXds(args: readonly string[]): Promise<string> {
  const child = spawn(portolan, ['xds', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  closing.push(() => child.kill('SIGKILL'));
  let out = '';
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`portolan xds exited with ${code}: ${out}`)));
    child.stdout.on('data', (chunk) => {
      out += chunk;
      const port = /ready (\d+)\n/.exec(out)?.[1];
      if (port !== undefined) resolve(`127.0.0.1:${port}`);
    });
  });
}

async function addPod(name: string, serviceAccountName: string, within = namespace): Promise<KubernetesObject> {
  const spec = { serviceAccountName, containers: [{ name: 'envoy', image: 'none' }] };
  return client.create(podType, {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: within } },
    spec,
  } as never);
}

async function tokenOf(account: string, pod: KubernetesObject | undefined, audience = 'portolan-xds'): Promise<string> {
  const ref = pod && { apiVersion: 'v1', kind: 'Pod', name: pod.metadata.name, uid: pod.metadata.uid };
  const within = pod?.metadata.namespace ?? namespace;
  const metadata = { name: account, namespace: within };
  const body = {
    ...{ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata },
    spec: { audiences: [audience], expirationSeconds: 600, ...(ref && { boundObjectRef: ref }) },
  };
  const place = { ...metadata, subresource: 'token' };
  const answer = (await client.createSubresource(serviceAccountType, place, body)) as AnyObject;
  return (answer['status'] as { token: string }).token;
}

function bootstrap(token: string, role: string, name: string) {
  const [tokenFile, directory] = [join(folder, 'token'), join(folder, name)];
  writeFileSync(tokenFile, token);
  const words = ['xds', 'bootstrap', '--role', role, '--name', name, '--server', server, '--directory', directory];
  // No home can be found: nothing but the token says who asks.
  const env = { ...process.env, KUBECONFIG: '/nonexistent', HOME: folder };
  return runPortolan([...words, '--token-file', tokenFile, '--authority-file', authorityFile], { env });
}

test('xds bootstrap with the token of a Pod -> a certificate for its role and name, which xds renew takes', async () => {
  const pod = await addPod('portolan-ingress-7', 'portolan-ingress');
  const made = await bootstrap(await tokenOf('portolan-ingress', pod), 'ingress', 'portolan-ingress-7');
  expect(made.err).toBe('');
  const written = JSON.parse(readFileSync(join(folder, 'portolan-ingress-7', 'envoy.json'), 'utf8'));
  expect(written.node).toMatchObject({ id: 'ingress~east~portolan-ingress-7', cluster: 'east' });
  const renewed = await runPortolan(['xds', 'renew', '--once', '--directory', join(folder, 'portolan-ingress-7')]);
  expect(renewed.out).toContain('next renewal');
});

const identityAt = (name: string) => {
  const text = readFileSync(join(folder, name, 'identity.json'), 'utf8');
  return identityIn(new X509Certificate(parseIdentity(text)!.certificate));
};

test('xds bootstrap with the token of a workload that xds was told of -> a sidecar in its name, renewed in it; another -> none', async () => {
  const workload = { namespace: 'shop', account: 'web' };
  const sidecar = { cluster: 'east', role: 'sidecar', name: 'shop.web-0', workload };
  const made = await bootstrap(await tokenOf('web', await addPod('web-0', 'web', 'shop')), 'sidecar', 'shop.web-0');
  expect(made.err).toBe('');
  expect(identityAt('shop.web-0')).toEqual(sidecar);
  const renewed = await runPortolan(['xds', 'renew', '--once', '--directory', join(folder, 'shop.web-0')]);
  expect(renewed.out).toContain('next renewal');
  expect(identityAt('shop.web-0')).toEqual(sidecar);
  const other = await bootstrap(await tokenOf('db', await addPod('db-0', 'db', 'shop')), 'sidecar', 'shop.db-0');
  expect(other.err).toContain('no account of an Envoy');
});

test('xds bootstrap --workload -> a sidecar in its name; of another role, or no account -> refused', async () => {
  const words = ['xds', 'bootstrap', '--kubeconfig', kubeconfig, '--cluster-id', 'east', '--name', 'vm-1'];
  const typed = (...more: string[]) => runPortolan([...words, '--directory', join(folder, 'vm-1'), ...more]);
  expect((await typed('--role', 'sidecar', '--workload', 'shop/web')).err).toBe('');
  expect(identityAt('vm-1')).toMatchObject({ name: 'vm-1', workload: { namespace: 'shop', account: 'web' } });
  const ingress = await typed('--role', 'ingress', '--workload', 'shop/web');
  expect([ingress.code, ingress.err]).toEqual([2, expect.stringContaining('it is for role sidecar')]);
  const bad = await typed('--role', 'sidecar', '--workload', 'shop');
  expect([bad.code, bad.err]).toEqual([2, expect.stringContaining('expected NAMESPACE/ACCOUNT')]);
});

test('xds bootstrap with another token -> none: of another account, of no Pod, for the API server, of a Pod that is gone', async () => {
  const pod = await addPod('portolan-envoy-1', 'portolan-envoy');
  const name = 'portolan-envoy-1';
  const refusal = async (token: string, role = 'sidecar') => (await bootstrap(token, role, name)).err;
  expect(await refusal(await tokenOf('portolan-envoy', pod), 'ingress')).toContain(
    'the token is that of sidecar~east~',
  );
  expect(await refusal(await tokenOf('portolan-envoy', undefined))).toContain('bound to no Pod');
  expect(await refusal(await tokenOf('portolan-dns', undefined))).toContain('no account of an Envoy');
  expect(await refusal(await tokenOf('portolan-envoy', pod, 'https://kubernetes.default.svc'))).toContain(
    'not one for',
  );
  expect(await refusal('a.b.c')).toContain('not one for');
  const late = await tokenOf('portolan-envoy', pod);
  expect(await refusal(late)).toBe('');
  await client.delete(podType, { namespace, name });
  expect(await refusal(late)).toContain('not valid, or not any more');
});
