// A dead ingress shows on both sides of a peering; an Envoy that is missing, on the side where it is missing.

import { expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { keepPartLease } from '../kube/controller/part-lease.ts';
import { conditionOf } from '../kube/objects/conditions.ts';
import { type ProgrammedByRole, programmedAnnotation } from '../kube/objects/reports/data-plane.ts';
import { type PeerExport, peerExportType } from './kinds/peer-export.ts';
import { namespace, type VirtualMesh, VirtualMeshes } from './testing/virtual-mesh.ts';

const since = '2026-01-01T00:00:00Z';
const sidecar: ProgrammedByRole = { sidecar: { proxies: 1, since, isBound: true } };
const ingress: ProgrammedByRole = { ingress: { proxies: 1, since } };

async function start() {
  const meshes = new VirtualMeshes();
  let isDead = false;
  let tries = 0;
  const probe = async ({ address, serverName }: { address: string; serverName: string }) => {
    tries += 1;
    expect([address, serverName]).toEqual(['192.0.2.1', 'checkout.shop.owner.example']);
    return isDead ? 'connection refused' : '';
  };
  const ingressProbe = { probe, everyMs: 6000 };
  const owner = await meshes.add('owner', { ingressProbe });
  const consumer = await meshes.add('consumer', { ingressProbe });
  const reports = new Map<VirtualMesh, ProgrammedByRole>([
    [owner, ingress],
    [consumer, sidecar],
  ]);
  const leases = new Map(
    [...reports.keys()].map((mesh) => {
      const extras = () => ({ [programmedAnnotation]: JSON.stringify(reports.get(mesh)) });
      const world = meshes.simulation.world(`xds-${mesh.name}`);
      const at = { client: mesh.home.admin, world, log: silentLog, namespace };
      return [mesh, keepPartLease({ ...at, part: 'xds', id: 'n1', extras })];
    }),
  );
  await owner.addService('checkout');
  await owner.exportAll(['consumer']);
  await meshes.introduce(owner, consumer);
  await meshes.time.advance(20_000);
  const shown = async (mesh: VirtualMesh, peer: string, type: string) => {
    const found = conditionOf((await mesh.peer(peer)).status?.conditions, type);
    return found === undefined ? 'none' : `${found.status} ${found.reason}`;
  };
  const exported = async () => {
    const ref = { namespace: 'shop', name: 'all' };
    const { status } = await meshes.time.settle(owner.home.admin.get<PeerExport>(peerExportType, ref));
    const found = conditionOf(status?.conditions, 'Ready');
    return `${found?.status} ${found?.reason}`;
  };
  return {
    ...{ meshes, owner, consumer, exported },
    tries: () => tries,
    taking: () => shown(consumer, 'owner', 'ServicesReachable'),
    giving: () => shown(owner, 'consumer', 'IngressServed'),
    die: (dead = true) => (isDead = dead),
    report: async (mesh: VirtualMesh, next: ProgrammedByRole) => {
      reports.set(mesh, next);
      leases.get(mesh)?.changed();
    },
  };
}

test('reach: Envoys on both sides -> reachable and served; the ingress dies -> told on both sides within 15 s; back -> taken back', async () => {
  const { meshes, owner, taking, giving, exported, die, report } = await start();
  expect([await taking(), await giving(), await exported()]).toEqual(['True Reachable', 'True Served', 'True Offered']);
  die();
  await report(owner, {});
  await meshes.time.advance(15_000);
  expect([await taking(), await giving()]).toEqual(['False IngressAway', 'False IngressAway']);
  expect(await exported()).toBe('False IngressAway');
  die(false);
  await report(owner, ingress);
  await meshes.time.advance(15_000);
  expect([await taking(), await giving(), await exported()]).toEqual(['True Reachable', 'True Served', 'True Offered']);
});

test('reach: the consumer has no Envoy -> its own finding; the owner is served', async () => {
  const { meshes, consumer, taking, giving, report } = await start();
  await report(consumer, {});
  await meshes.time.advance(15_000);
  expect([await taking(), await giving()]).toEqual(['False NotProgrammed', 'True Served']);
});

test('reach: an hour -> as many tries as it takes, and no write without news', async () => {
  const { meshes, consumer, tries } = await start();
  const before = { tries: tries(), conditions: (await consumer.peer('owner')).status?.conditions };
  await meshes.time.advance(3_600_000);
  expect(tries() - before.tries).toBeGreaterThan(1000);
  expect(tries() - before.tries).toBeLessThanOrEqual(1201);
  expect((await consumer.peer('owner')).status?.conditions).toEqual(before.conditions);
});
