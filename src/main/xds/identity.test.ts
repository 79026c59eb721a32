// The keys that proxies are given: each its own, for calls to peers' services alone. Whoever has them, or reaches the local
// socket, cannot speak for the mesh.

import { X509Certificate } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { startXdsTest, type XdsTest } from '../../../test/support/xds.ts';
import { connect, local, node, type Stream } from '../../../test/support/xds-stream.ts';
import { silentLog } from '../../base/log.ts';
import { createMetrics } from '../../base/metrics.ts';
import { createRealWorld } from '../../base/real/world.ts';
import type { Credentials } from '../../base/x509/certificates.ts';
import type { Client } from '../../kube/client/client.ts';
import { pairIn } from '../../kube/client/kept-authority.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { peerType } from '../../peering/kinds/peer.ts';
import { authoritySecret, certificateSecret } from '../../peering/kinds/secrets.ts';
import { memoryHome, namespace } from '../../peering/testing/edge/memory-home.ts';
import { identitiesOf } from '../../peering/trust/trust.ts';
import { typeUrlOf } from '../../xds/envoy-schema.ts';
import type { Workload } from '../../xds/identity/proxy-identity.ts';
import { identitySecret } from '../../xds/peers/generate.ts';
import { MeshCertificates, ofWorkloads } from '../../xds/sources/mesh-certificates.ts';
import { type PeeringRole, startPeeringRole } from '../peering/part.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const secrets = { type_url: typeUrlOf('secret') };
const clientAuth = '1.3.6.1.5.5.7.3.2';
const catalogs = '/federation.resourcediscovery.v1alpha1.DiscoveryService/EstablishStream';

async function startMesh(name: string): Promise<{ readonly client: Client; readonly role: PeeringRole }> {
  const home = await memoryHome();
  closing.push(() => home.stop());
  const trustDomain = `${name}.example`;
  const role = await startPeeringRole({
    ...{ world: createRealWorld(), log: silentLog, metrics: createMetrics(), home: home.client, namespace },
    listen: { host: '127.0.0.1', port: 0 },
    advertise: '127.0.0.1:0',
    mesh: { trustDomain, domain: trustDomain, ingress: [] },
    own: { zones: ['cluster.local'], ranges: [], hosts: [] },
    versions: ['v1alpha1', 'v1alpha2'],
    isReplicated: false,
    addressRanges: ['242.0.0.0/16'],
  });
  closing.push(() => role.stop());
  return { client: home.client, role };
}

async function pairOf(client: Client, name: string): Promise<Credentials> {
  return pairIn(await client.get<Secret>(secretType, { namespace, name }))!;
}

/** globex consumes, acme owns and trusts any identity of globex. */
async function startBoth(): Promise<{ readonly xds: XdsTest; readonly client: Client; readonly acme: string }> {
  const [acme, globex] = [await startMesh('acme'), await startMesh('globex')];
  const { certificate: bundle } = await pairOf(globex.client, authoritySecret);
  await acme.client.create(peerType, {
    ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata: { name: 'globex', namespace } },
    spec: { trust: { domain: 'globex.example', bundle } },
  });
  const xds = await startXdsTest({ home: globex.client });
  closing.push(() => xds.stop());
  return { xds, client: globex.client, acme: `https://${acme.role.advertised}` };
}

async function identityOf(xds: XdsTest, name: string, workload?: Workload): Promise<Credentials> {
  const stream = await xds.proxy(`sidecar~east~${name}`, undefined, workload && { workload });
  closing.push(() => stream.close());
  stream.send({ ...node(`sidecar~east~${name}`), ...secrets, resource_names_subscribe: [identitySecret] });
  return credentialsIn(await stream.next());
}

function credentialsIn(response: Record<string, unknown>): Credentials {
  const text = JSON.stringify(response);
  const inline = [...text.matchAll(/"inline_string":"([^"]+)"/g)].map(([, pem]) => JSON.parse(`"${pem}"`) as string);
  const [certificate = '', key = ''] = inline.sort((one) => (one.includes('CERTIFICATE') ? -1 : 1));
  return { certificate, key };
}

function openCatalog(acme: string, { certificate: cert, key }: Credentials): Stream {
  const stream = connect(acme, { rejectUnauthorized: false, cert, key }, catalogs);
  closing.push(() => stream.close());
  return stream;
}

test('proxy keys: a sidecar -> a certificate of its own for calls, which is neither that of the mesh nor of another sidecar', async () => {
  const { xds, client } = await startBoth();
  const [one, other] = [await identityOf(xds, 'one'), await identityOf(xds, 'other')];
  const leaf = new X509Certificate(one.certificate);
  expect(identitiesOf(leaf)).toEqual(['spiffe://globex.example/portolan/proxy/sidecar/one']);
  expect([leaf.keyUsage, leaf.ca]).toEqual([[clientAuth], false]);
  expect(new Set([one.key, other.key, (await pairOf(client, certificateSecret)).key]).size).toBe(3);
  // It comes back as it was: a stream that breaks costs no new key.
  expect(await identityOf(xds, 'one')).toEqual(one);
});

test('proxy keys: sidecars beside a workload -> its name in the certificate of each, keys of their own; no catalog for them', async () => {
  const { xds, acme } = await startBoth();
  const web = { namespace: 'shop', account: 'web' };
  const [one, other] = [await identityOf(xds, 'shop.web-0', web), await identityOf(xds, 'shop.web-1', web)];
  for (const { certificate } of [one, other])
    expect(identitiesOf(new X509Certificate(certificate))).toEqual([
      'spiffe://globex.example/portolan/proxy/ns/shop/sa/web',
    ]);
  expect(one.key).not.toBe(other.key);
  expect(await openCatalog(acme, one).ended).toMatchObject({
    code: 16,
    message: expect.stringContaining('portolan/proxy/ns/shop/sa/web is the identity of a proxy'),
  });
});

test('proxy keys: a peering stream with the key of a sidecar or of a workload -> Unauthenticated at every peer', async () => {
  const { xds, client, acme } = await startBoth();
  const sidecar = openCatalog(acme, await identityOf(xds, 'web'));
  expect(await sidecar.ended).toMatchObject({
    code: 16,
    message: expect.stringContaining('portolan/proxy/sidecar/web is the identity of a proxy'),
  });
  const issuer = new MeshCertificates(createRealWorld(), ofWorkloads);
  const workload = issuer.of('spiffe://globex.example/ns/shop/sa/db', await pairOf(client, authoritySecret));
  expect(await openCatalog(acme, workload).ended).toMatchObject({
    code: 16,
    message: expect.stringContaining('is not for clients'),
  });
});

test('proxy keys: a program on the local socket -> refused as a sidecar or ingress, and no secret as a gRPC client', async () => {
  const { xds } = await startBoth();
  const asked = {
    ...secrets,
    resource_names_subscribe: [identitySecret, 'peering/trust/acme', 'external:bank:client'],
  };
  for (const role of ['sidecar', 'ingress']) {
    const stream = local(xds.socket);
    closing.push(() => stream.close());
    stream.send({ ...node(`${role}~east~web`), ...asked });
    expect(await stream.ended).toMatchObject({ code: 7, message: expect.stringContaining('connects by mutual TLS') });
  }
  // The real sidecar of that name is there, and its secrets with it.
  await identityOf(xds, 'web');
  const stream = local(xds.socket);
  closing.push(() => stream.close());
  stream.send({ ...node('grpc~east~web'), ...asked });
  expect(await stream.next()).toMatchObject({
    type_url: secrets.type_url,
    removed_resources: asked.resource_names_subscribe,
  });
});
