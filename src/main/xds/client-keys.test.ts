// Client keys of external services that name their users: served to the proxies of nodes that run one, and to no other.

import { afterEach, expect, test } from 'vitest';
import { startXdsTest, type XdsTest } from '../../../test/support/xds.ts';
import { clusters, node, type Stream } from '../../../test/support/xds-stream.ts';
import { meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { createAuthority } from '../../external/testing/pem.ts';
import { externalService } from '../../external/testing/services.ts';
import { externalNamespace } from '../../kube/objects/ours.ts';
import { type Pod, podType } from '../../kube/objects/pod.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { namespace } from '../../peering/testing/edge/memory-home.ts';
import { typeUrlOf } from '../../xds/envoy-schema.ts';
import type { Workload } from '../../xds/identity/proxy-identity.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const patient = { timeout: 30_000 };
const key = 'external:bank:client';

async function startBank(usedBy: string): Promise<XdsTest> {
  const xds = await startXdsTest();
  closing.push(() => xds.stop());
  const authority = createAuthority();
  const pair = authority.issue({ kind: 'client' });
  const texts = { 'ca.crt': authority.certificate, 'tls.crt': pair.certificate, 'tls.key': pair.key };
  const data = Object.fromEntries(Object.entries(texts).map(([n, text]) => [n, Buffer.from(text).toString('base64')]));
  const metadata = { name: 'pki', namespace: externalNamespace };
  await xds.client.create<Secret>(secretType, { apiVersion: 'v1', kind: 'Secret', metadata, data });
  const source = '{ secret: pki }';
  const tls = `{ caCert: ${source}, clientCert: ${source}, clientKey: ${source}${usedBy} }`;
  const spec = `{ match: [{ type: IP, value: 10.9.9.9, port: 80 }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }], tls: ${tls} } }`;
  await xds.client.create(meshExternalServiceType, externalService(spec, { name: 'bank' }));
  return xds;
}

async function run(xds: XdsTest, name: string, at: { namespace: string; nodeName: string; account?: string }) {
  const spec = {
    nodeName: at.nodeName,
    serviceAccountName: at.account ?? 'default',
    containers: [{ name: 'c', image: 'i' }],
  };
  const metadata = { name, namespace: at.namespace };
  await xds.client.create<Pod>(podType, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
}

/** The names of all secrets that this proxy is sent; it asks for the CA and the key. */
async function secretsOf(xds: XdsTest, proxy: string): Promise<{ readonly got: Set<string>; readonly stream: Stream }> {
  const stream = await xds.proxy(`sidecar~east~${proxy}`);
  closing.push(() => stream.close());
  const got = new Set<string>();
  const secrets = { type_url: typeUrlOf('secret') };
  stream.send({ ...node(`sidecar~east~${proxy}`), ...clusters });
  stream.send({ ...secrets, resource_names_subscribe: ['external:bank:ca', key] });
  void (async () => {
    for (;;) {
      const { nonce, type_url, resources } = await stream.next();
      if (type_url === secrets.type_url) for (const { name } of (resources ?? []) as { name: string }[]) got.add(name);
      stream.send({ type_url, response_nonce: nonce });
    }
  })();
  await expect.poll(() => got.has('external:bank:ca'), patient).toBe(true);
  return { got, stream };
}

/** Whether a proxy that connects now may see the key. */
function sees(xds: XdsTest, name: string, workload?: Workload): boolean {
  const proxy = { role: 'sidecar', cluster: 'east', name, ...(workload && { workload }) } as const;
  const place = { cluster: 'east', zone: '', region: '' };
  const { view, release } = xds.role.service.views.open({ proxy, place, isClustersetProxied: false });
  const isSeen = view.get('secret', key) !== undefined;
  release();
  return isSeen;
}

test('client keys: used by an account -> sent to sidecars of nodes that run it, to no other; later Pods bring it, gone ones take it', async () => {
  const xds = await startBank(', usedBy: [{ namespace: shop, serviceAccount: pay }]');
  await run(xds, 'envoy-a', { namespace, nodeName: 'node-1' });
  await run(xds, 'envoy-b', { namespace, nodeName: 'node-2' });
  await run(xds, 'pay-1', { namespace: 'shop', nodeName: 'node-1', account: 'pay' });
  await run(xds, 'web-1', { namespace: 'shop', nodeName: 'node-2', account: 'web' });
  // The same account of another namespace is another one.
  await run(xds, 'pay-1', { namespace: 'default', nodeName: 'node-2', account: 'pay' });
  await expect.poll(() => sees(xds, 'envoy-a'), patient).toBe(true);
  const [a, b] = [await secretsOf(xds, 'envoy-a'), await secretsOf(xds, 'envoy-b')];
  await expect.poll(() => a.got.has(key), patient).toBe(true);
  expect([b.got.has(key), sees(xds, 'envoy-b'), sees(xds, 'stranger')]).toEqual([false, false, false]);
  // The machine itself is a proxy of its own name where there are no Pods of Envoys.
  expect([sees(xds, 'node-1'), sees(xds, 'node-2')]).toEqual([true, false]);

  await run(xds, 'pay-2', { namespace: 'shop', nodeName: 'node-2', account: 'pay' });
  await expect.poll(() => b.got.has(key), patient).toBe(true);
  await xds.client.delete(podType, { namespace: 'shop', name: 'pay-1' });
  await expect.poll(() => sees(xds, 'envoy-a'), patient).toBe(false);
  expect(sees(xds, 'envoy-b')).toBe(true);
});

test('client keys: a sidecar beside one workload -> those that this one uses, whatever the name of its Pod', async () => {
  const xds = await startBank(', usedBy: [{ namespace: shop, serviceAccount: pay }]');
  // A namespace and a Pod may together have the name of a node.
  await run(xds, 'pay-1', { namespace: 'shop', nodeName: 'web.node-1', account: 'pay' });
  await expect.poll(() => sees(xds, 'web.node-1'), patient).toBe(true);
  expect(sees(xds, 'web.node-1', { namespace: 'web', account: 'pay' })).toBe(false);
  expect(sees(xds, 'shop.web-1', { namespace: 'shop', account: 'web' })).toBe(false);
  expect(sees(xds, 'shop.pay-1', { namespace: 'shop', account: 'pay' })).toBe(true);
});

test('client keys: xds starts again -> the same proxies have the key with the first configuration', async () => {
  const xds = await startBank(', usedBy: [{ namespace: shop }]');
  await run(xds, 'envoy-a', { namespace, nodeName: 'node-1' });
  await run(xds, 'any', { namespace: 'shop', nodeName: 'node-1' });
  await xds.restart();
  expect([sees(xds, 'envoy-a'), sees(xds, 'envoy-b')]).toEqual([true, false]);
});

test.each([
  ['', true],
  [', usedBy: []', false],
])('client keys: without users named (%j) -> for every sidecar: %s', async (usedBy, isServed) => {
  const xds = await startBank(usedBy);
  const { external } = xds.role.service.views;
  await expect.poll(() => external.get('secret', 'external:bank:ca'), patient).toBeDefined();
  expect(sees(xds, 'envoy-a')).toBe(isServed);
});
