// The whole role over real sockets: certificates and roots are rotated where they lie, and no stream notices.

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { createMetrics } from '../../base/metrics.ts';
import { createRealWorld } from '../../base/real/world.ts';
import type { World } from '../../base/world.ts';
import { dnsOptionsManifest } from '../../clusterset/rules/clusterset-dns.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { whyNotIngress } from '../../peering/kinds/ingress-address.ts';
import { peerType } from '../../peering/kinds/peer.ts';
import { type PeerService, peerServiceType } from '../../peering/kinds/peer-service.ts';
import { certificateSecret } from '../../peering/kinds/secrets.ts';
import { meshCardName } from '../../peering/rules/peer-introduction.ts';
import { type MemoryHome, memoryHome, namespace, startMesh } from '../../peering/testing/edge/memory-home.ts';
import { meshOf } from '../../peering/testing/edge/mesh.ts';
import { eventually } from '../../peering/testing/edge/running-meshes.ts';
import { followReserved } from '../identity/reserved.ts';
import { startPeeringRole } from './part.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Material {
  readonly certificate: string;
  readonly key: string;
  readonly bundle: string;
}

/** Looking for new certificates happens every 10 s; here, every 20 ms. */
function hastyWorld(): World {
  const real = createRealWorld();
  const after = (delayMs: number, run: () => void) => real.timers.after(delayMs === 10_000 ? 20 : delayMs, run);
  return { ...real, timers: { ...real.timers, after } };
}

/** The place of the mesh's certificate, and how it is replaced. */
const places = {
  'PEM files': (_home: MemoryHome) => {
    const folder = mkdtempSync(join(tmpdir(), 'peering-role-'));
    closing.push(() => rmSync(folder, { recursive: true }));
    const files = { certificate: join(folder, 'c'), key: join(folder, 'k'), bundle: join(folder, 'b') };
    const put = async ({ certificate, key, bundle }: Material) => {
      writeFileSync(files.bundle, bundle);
      writeFileSync(files.certificate, certificate);
      await new Promise((resolve) => setTimeout(resolve, 100));
      writeFileSync(files.key, key);
    };
    return { files, put };
  },
  'a Secret': ({ client }: MemoryHome) => {
    const ref = { name: certificateSecret, namespace };
    let isThere = false;
    const put = async ({ certificate, key, bundle }: Material) => {
      const stringData = { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': bundle };
      const secret = { apiVersion: 'v1', kind: 'Secret', metadata: ref, type: 'kubernetes.io/tls', stringData };
      if (isThere) await client.patch(secretType, ref, { kind: 'merge', body: { stringData } });
      else await client.create(secretType, secret);
      isThere = true;
    };
    return { put };
  },
};

/** Whether a client that verifies the address, as those of other gRPC libraries do, takes our certificate. */
async function isVerified(address: string, bundle: string | undefined): Promise<boolean> {
  const [host, port] = address.split(':');
  const socket = connect({ host, port: Number(port), ca: bundle, ALPNProtocols: ['h2'] });
  const outcome = new Promise<boolean>((resolve) => {
    socket.once('secureConnect', () => resolve(socket.authorized));
    socket.once('error', () => resolve(false));
  });
  return outcome.finally(() => socket.destroy());
}

/** Whether a new connection is shown a certificate of this authority. */
async function isShownBy(address: string, authority: string): Promise<boolean> {
  const [host, port] = address.split(':');
  const socket = connect({ host, port: Number(port), rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  try {
    await once(socket, 'secureConnect');
    const shown = new X509Certificate(socket.getPeerCertificate().raw);
    return shown.verify(new X509Certificate(authority).publicKey);
  } finally {
    socket.destroy();
  }
}

test.each(['PEM files', 'a Secret'] as const)(
  'peering role: certificate and root in %s are rotated -> the open stream goes on, new ones show the new, and take its place when the old root goes',
  async (place) => {
    const home = await memoryHome();
    closing.push(() => home.stop());
    const { put, ...where } = places[place](home);
    const [first, second] = [meshOf('owner.example'), meshOf('owner.example')];
    await put({ ...first.issue(), bundle: first.certificate });
    const role = await startPeeringRole({
      ...{ world: hastyWorld(), log: silentLog, metrics: createMetrics(), home: home.client, namespace },
      listen: { host: '127.0.0.1', port: 0 },
      advertise: '127.0.0.1:0',
      mesh: { trustDomain: 'owner.example', domain: 'owner.example', ingress: [{ address: '192.0.2.1', port: 15443 }] },
      ...{
        own: { zones: [], ranges: [], hosts: [] },
        versions: ['v1alpha1'],
        isReplicated: false,
        addressRanges: [],
        ...where,
      },
    });
    closing.push(() => role.stop());
    const consumer = await startMesh('consumer');
    closing.push(() => consumer.stop());
    const trust = { domain: 'consumer.example', bundle: consumer.mesh.certificate };
    const kind = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata: { name: 'consumer', namespace } };
    await home.client.create(peerType, { ...kind, spec: { trust } });
    const ownerTrust = (bundle: string) => ({ domain: 'owner.example', bundle });
    const both = first.certificate + second.certificate;
    await consumer.addPeer('owner', { address: role.advertised, trust: ownerTrust(both), allowedDomains: ['*'] });
    const stream = () => role.peering.owner.report('consumer');
    await eventually(() => stream()?.state).toBe('waiting');
    const sinceMs = stream()?.sinceMs;

    await put({ ...second.issue(), bundle: second.certificate });
    const card = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', isNamespaced: true };
    await eventually(async () => {
      const { data } = await home.client.get(card, { namespace, name: meshCardName });
      return (data as Record<string, string>)['bundle'];
    }).toBe(second.certificate);
    // Files are replaced one by one: the bundle may be published before certificate and key fit together again.
    await eventually(() => isShownBy(role.advertised, second.certificate)).toBe(true);
    expect(stream()?.sinceMs).toBe(sinceMs);

    const body = { spec: { trust: ownerTrust(second.certificate) } };
    await consumer.client.patch(peerType, { namespace, name: 'owner' }, { kind: 'merge', body });
    // The open stream was authenticated by the old root: a new one takes its place at once, with the new certificate.
    await eventually(() => (stream()?.sinceMs ?? 0) > (sinceMs ?? 0) && stream()?.state).toBe('waiting');
    await consumer.restart();
    await eventually(() => (stream()?.sinceMs ?? 0) > (sinceMs ?? 0) && stream()?.state).toBe('waiting');
  },
);

test('peering role: a peer names the address that our API has inside the cluster as its ingress -> refused, without a flag', async () => {
  const home = await memoryHome();
  closing.push(() => home.stop());
  const ref = { namespace: 'default', name: 'kubernetes' };
  if ((await getOrUndefined(home.client, serviceType, ref)) === undefined)
    await home.client.create(serviceType, {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: ref },
      spec: { ports: [{ port: 443 }] },
    } as Service);
  const api = (await home.client.get<Service>(serviceType, ref)).spec?.clusterIP ?? '';
  const reserved = followReserved({
    ...{ world: createRealWorld(), log: silentLog, home: home.client, onChanged: () => {} },
    ...{ zones: [], ranges: [], hosts: ['api.us.example'] },
  });
  closing.push(() => reserved.stop());
  await reserved.whenRead();
  const { zones: ownZones, hosts: ownHosts } = reserved.current();
  const bounds = { allowed: [], ownZones, ownRanges: [], ownHosts };
  expect(whyNotIngress(api, bounds)).toContain('address of our own');
  expect(whyNotIngress('api.us.example', bounds)).toContain('host of our own');
  await home.client.delete(serviceType, ref);
  await eventually(() => reserved.current().hosts.includes(api)).toBe(false);
});

test("peering role: the clusterset's zone, federation and ranges -> no peer may claim them, and services get addresses from them; our certificate has our address", async () => {
  const home = await memoryHome();
  closing.push(() => home.stop());
  const ranges = { clusterSet: ['10.50.0.0/16'], peers: ['10.60.0.0/30'], external: ['10.70.0.0/30'] };
  const written = (suffix: string) =>
    dnsOptionsManifest(
      { zone: 'set.example', ttlSeconds: 5, clusterNames: 'Hidden' },
      { addressPlan: { authorities: {}, federationZones: [suffix], ranges }, namespace: 'portolan-system' },
    ).object;
  await home.client.create(configMapType, written('first.example'));
  const own = { zones: ['cluster.local'], ranges: [], hosts: [] };
  const role = await startPeeringRole({
    ...{ world: createRealWorld(), log: silentLog, metrics: createMetrics(), home: home.client, namespace },
    ...{ listen: { host: '127.0.0.1', port: 0 }, advertise: '127.0.0.1:0', own },
    mesh: { trustDomain: 'us.example', domain: 'us.example', ingress: [] },
    ...{ versions: ['v1alpha1'], isReplicated: false },
  });
  closing.push(() => role.stop());
  const owner = await startMesh('owner');
  closing.push(() => owner.stop());
  const card = await home.client.get<ConfigMap>(configMapType, { namespace, name: meshCardName });
  expect(await isVerified(role.advertised, card.data?.['bundle'])).toBe(true);
  await owner.addPeer('us', { trust: { domain: 'us.example', bundle: card.data?.['bundle'] as string } });
  const kind = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata: { name: 'owner', namespace } };
  const trust = { domain: 'owner.example', bundle: owner.mesh.certificate };
  const address = `127.0.0.1:${owner.peering.port}`;
  await home.client.create(peerType, { ...kind, spec: { address, trust, allowedDomains: ['*'] } });
  const share = async (name: string, spec: object) => {
    await owner.addService(name);
    await owner.exportServices({ peers: ['us'], services: [name], ...spec }, name);
  };
  await share('zone', { fqdn: 'zone.set.example' });
  await share('federation', { fqdn: 'federation.second.example' });
  await share('range', { ingress: [{ address: '10.50.0.9', port: 443 }] });
  await share('fine', {});
  const services = async () => {
    const { items } = await home.client.list<PeerService>(peerServiceType, { namespace });
    return Object.fromEntries(
      items.map(({ spec, status }) => [spec.id.split('.')[0], status?.message ?? status?.ips?.[0]]),
    );
  };
  await eventually(services).toMatchObject({
    zone: expect.stringContaining('our own zone set.example'),
    federation: expect.stringMatching(/^10\.60\.0\./),
    range: expect.stringContaining('10.50.0.9 is in a range of this cluster'),
    fine: expect.stringMatching(/^10\.60\.0\./),
  });
  await share('one', {});
  await share('two', {});
  await share('three', {});
  const conditions = async () =>
    (await home.client.list<PeerService>(peerServiceType, { namespace })).items.flatMap(
      ({ status }) => status?.conditions?.map(({ type, reason }) => `${type} ${reason}`) ?? [],
    );
  await eventually(conditions).toContain('AddressHeld RangeExhausted');
  await home.client.patch(
    configMapType,
    { namespace: 'portolan-system', name: 'portolan-clusterset-dns' },
    {
      kind: 'merge',
      body: { data: written('second.example').data },
    },
  );
  await eventually(services).toMatchObject({ federation: expect.stringContaining('our own zone second.example') });
});
