// Established connections through the ingress of a mesh, in a real Envoy: they end when what allowed them is taken away, and
// those of others go on.

import { expect, test } from 'vitest';
import { ingressArgs } from '../src/install/envoy-containers.ts';
import { type Secret, secretType } from '../src/kube/objects/secret.ts';
import { type Peer, peerType } from '../src/peering/kinds/peer.ts';
import { type PeerExport, peerExportType } from '../src/peering/kinds/peer-export.ts';
import { certificateSecret } from '../src/peering/kinds/secrets.ts';
import { namespace } from '../src/peering/testing/edge/memory-home.ts';
import { describeWith } from './support/counterparts.ts';
import { introduce, type Mesh, shareDatabase, startMesh } from './support/xds-meshes.ts';
import { openNamespace, pause, serve, settled, until } from './support/xds-served.ts';

const wantedMs = 5000;
const gate = { address: '10.70.1.1', port: 15_443, sni: 'db.shop.acme.example' };

async function world() {
  const inside = openNamespace();
  const owner = await startMesh('acme', [{ address: gate.address, port: gate.port }]);
  const globex = await startMesh('globex', []);
  const initech = await startMesh('initech', []);
  await introduce(owner, globex);
  await introduce(owner, initech);
  await shareDatabase(owner, 'terminate', ['globex', 'initech']);
  await inside.ask({ do: 'echo', address: '10.70.2.1', port: 5432 });
  const xds = await serve(inside, 'east', owner.client);
  const envoy = inside.startEnvoy(xds.folder, 'ingress', await xds.bootstrap('ingress', 'gate'), ingressArgs);
  await settled(xds, 'ingress~east~gate', 2);
  const hold = async (name: string, mesh: Mesh) => {
    const { data = {} } = await mesh.client.get<Secret>(secretType, { namespace, name: certificateSecret });
    const text = (key: string) => Buffer.from(data[key]!, 'base64').toString();
    const pair = { certificate: text('tls.crt'), key: text('tls.key') };
    return inside.ask({ do: 'hold', name, ...gate, ...pair });
  };
  const held = async (name: string) =>
    (await inside.ask({ do: 'held', name })) as { echoes: number; isClosed: boolean };
  const closedWithinMs = async (name: string) => {
    const startMs = performance.now();
    await until(`${name} is closed`, async () => ((await held(name)).isClosed ? true : undefined));
    return performance.now() - startMs;
  };
  const goesOn = async (name: string) => {
    const { echoes } = await held(name);
    await pause(1000);
    const after = await held(name);
    return !after.isClosed && after.echoes > echoes;
  };
  return { owner, globex, initech, hold, held, closedWithinMs, goesOn, log: () => envoy.log() };
}

type World = Awaited<ReturnType<typeof world>>;

describeWith(['envoy', 'ip', 'nft'], 'revocation: an established connection through the ingress', () => {
  test.each<[string, (world: World) => Promise<unknown>]>([
    ['its Peer is deleted', ({ owner }) => owner.client.delete(peerType, { namespace, name: 'globex' })],
    [
      'its Peer is left out of the PeerExport',
      ({ owner }) => changeExport(owner, (spec) => ({ ...spec, peers: ['initech'] })),
    ],
    [
      'its identity is no longer among those of its Peer',
      ({ owner }) =>
        changePeer(owner, 'globex', (trust) => ({ ...trust, identities: ['spiffe://globex.example/other'] })),
    ],
  ])('%s -> closed within 5 s, and not opened again; that of another peer goes on', async (_how, revoke) => {
    const at = await world();
    expect(await at.hold('globex', at.globex), at.log()).toBe('open');
    expect(await at.hold('initech', at.initech)).toBe('open');
    await revoke(at);
    const ms = await at.closedWithinMs('globex');
    expect(ms).toBeLessThan(wantedMs);
    expect(await at.goesOn('initech')).toBe(true);
    expect(await at.hold('globex again', at.globex)).toBe('refused');
    expect(await at.hold('initech again', at.initech)).toBe('open');
  });

  test('the service is shared no longer -> all of its connections are closed within 5 s', async () => {
    const at = await world();
    for (const [name, mesh] of [
      ['globex', at.globex],
      ['initech', at.initech],
    ] as const)
      expect(await at.hold(name, mesh), at.log()).toBe('open');
    await at.owner.client.delete(peerExportType, { namespace: 'shop', name: 'db' });
    for (const name of ['globex', 'initech']) expect(await at.closedWithinMs(name)).toBeLessThan(wantedMs);
    expect(await at.hold('again', at.globex)).toBe('refused');
  });

  test('another peer is added, and then a root of its own -> nothing is closed', async () => {
    const at = await world();
    await changeExport(at.owner, (spec) => ({ ...spec, peers: ['globex'] }));
    await until('globex is let in', async () => ((await at.hold('globex', at.globex)) === 'open' ? true : undefined));
    await changeExport(at.owner, (spec) => ({ ...spec, peers: ['globex', 'initech'] }));
    await until('initech is let in', async () =>
      (await at.hold('initech', at.initech)) === 'open' ? true : undefined,
    );
    const bundle = `${at.initech.bundle}${at.owner.bundle}`;
    await changePeer(at.owner, 'initech', (trust) => ({ ...trust, bundle }));
    await pause(4000);
    for (const name of ['globex', 'initech']) expect(await at.goesOn(name)).toBe(true);
  });
});

async function changeExport({ client }: Mesh, change: (spec: PeerExport['spec']) => PeerExport['spec']): Promise<void> {
  const present = await client.get<PeerExport>(peerExportType, { namespace: 'shop', name: 'db' });
  await client.update(peerExportType, { ...present, spec: change(present.spec) });
}

async function changePeer(
  { client }: Mesh,
  name: string,
  change: (trust: Peer['spec']['trust']) => Peer['spec']['trust'],
): Promise<void> {
  const present = await client.get<Peer>(peerType, { namespace, name });
  await client.update(peerType, { ...present, spec: { ...present.spec, trust: change(present.spec.trust) } });
}
