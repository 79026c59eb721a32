import { describe, expect, test } from 'vitest';
import { SimHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { peerService } from '../../dns/testing/peer-names.ts';
import type { AnyObject, ResourceType } from '../../kube/objects/object.ts';
import { type PeerService, peerServiceType } from '../../peering/kinds/peer-service.ts';
import { Catalog } from '../catalog.ts';
import { namesOutside } from '../names/outside-gate.ts';
import { attachOutside } from './attach-outside.ts';
import { PeerTable } from './peer-table.ts';

const namespace = 'portolan-system';
const definitionType: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
};

function setUp(options: { hasDefinitions?: boolean; mayRead?: boolean } = {}) {
  const sim = new Simulation({ seed: 1 });
  const home = new SimHome({
    simulation: sim,
    name: 'west',
    serviceRanges: ['10.96.0.0/16'],
    mayDo: (_user, { resource }) => options.mayRead !== false || resource !== 'peerservices',
    ...(options.hasDefinitions ? { hasDefinitions: true } : {}),
  });
  const world = sim.world('dns-west');
  const { table, zones } = new Catalog({ clock: world.clock, cluster: { id: 'west' } });
  const peers = new PeerTable({ table, clock: world.clock, otherZones: () => zones });
  const attach = () =>
    attachOutside({
      names: peers,
      type: peerServiceType,
      client: home.clientOf(world),
      world,
      log: silentLog,
      namespace,
    });
  return {
    ...{ sim, home, peers, attach },
    add: async (service = peerService(), where = namespace) => {
      const { status, metadata, ...rest } = service;
      const { name, annotations } = metadata;
      const object = { ...rest, metadata: { name, namespace: where, annotations } };
      await home.admin.create<PeerService>(peerServiceType, object);
      await home.admin.patch(
        peerServiceType,
        { namespace: where, name },
        { kind: 'merge', body: { status } },
        { subresource: 'status' },
      );
    },
    isReady: () => table.isReady(peers.zone.id),
    isPassing: () => table.isReady(namesOutside),
    has: (name: string) => (table.get(name)?.sets.length ?? 0) > 0,
  };
}

describe('names of peers, attached to a home', () => {
  const name = 'db.east.example';

  test("a home that is away -> others' names are held back for five seconds, and known when it comes", async () => {
    const { sim, home, attach, add, isReady, isPassing, has } = setUp();
    const attachment = attach();
    await sim.time.advance(4900);
    expect([isReady(), isPassing()]).toEqual([false, false]);
    await sim.time.advance(200);
    expect([isReady(), isPassing(), attachment.isWaiting()]).toEqual([false, true, true]);
    await sim.time.settle(home.start());
    await sim.time.settle(add());
    await sim.time.until(isReady, { withinMs: 60_000 });
    await sim.time.until(() => has(name), { withinMs: 1000 });
    expect(attachment.isWaiting()).toBe(false);
    attachment.stop();
  });

  test('a home that answers -> read at once, then changes and deletions are followed', async () => {
    const { sim, home, attach, add, isPassing, has } = setUp();
    await sim.time.settle(home.start());
    await sim.time.settle(add());
    const attachment = attach();
    await sim.time.settle(attachment.whenSynced());
    expect([isPassing(), has(name)]).toEqual([true, true]);
    await sim.time.settle(add(peerService({ fqdn: 'later.east.example', name: 'later' })));
    await sim.time.until(() => has('later.east.svc.peers.local'), { withinMs: 1000 });
    await sim.time.settle(home.admin.delete(peerServiceType, { namespace, name: 'east.db.east.example' }));
    await sim.time.until(() => !has(name), { withinMs: 1000 });
    attachment.stop();
  });

  test("the kind is absent -> nobody waits, others' names go on at once; it comes -> noticed", async () => {
    const { sim, home, attach, add, isReady, isPassing, has } = setUp({ hasDefinitions: true });
    await sim.time.settle(home.start());
    const ref = { name: 'peerservices.portolan.dev' };
    const definition = await sim.time.settle(home.admin.get<AnyObject>(definitionType, ref));
    await sim.time.settle(home.admin.delete(definitionType, ref));
    await sim.time.advance(2000);
    const attachment = attach();
    const startedMs = sim.time.nowMs;
    await sim.time.settle(attachment.whenSynced());
    expect(sim.time.nowMs - startedMs).toBeLessThan(3000);
    expect([isPassing(), isReady(), attachment.isWaiting()]).toEqual([true, false, false]);
    await sim.time.until(isReady, { withinMs: 120_000 });
    const { apiVersion, kind, spec } = definition as AnyObject & { spec: object };
    await sim.time.settle(home.admin.create(definitionType, { apiVersion, kind, metadata: ref, spec } as AnyObject));
    await sim.time.advance(2000);
    await sim.time.settle(add());
    await sim.time.until(() => has(name), { withinMs: 120_000 });
    attachment.stop();
  });

  test('the kind may not be read -> nobody waits', async () => {
    const { sim, home, attach, isPassing } = setUp({ mayRead: false });
    await sim.time.settle(home.start());
    const attachment = attach();
    await sim.time.settle(attachment.whenSynced());
    expect(isPassing()).toBe(true);
    attachment.stop();
  });

  test('a PeerService in another namespace -> has no name: its writer is not whom a cluster believes', async () => {
    const { sim, home, attach, add, has } = setUp();
    await sim.time.settle(home.start());
    await sim.time.settle(add(peerService(), 'default'));
    const attachment = attach();
    await sim.time.settle(attachment.whenSynced());
    expect(has(name)).toBe(false);
    attachment.stop();
  });
});
