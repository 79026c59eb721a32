// Least privilege, by the audit logs of real API servers: every part, with the token of its own account, does all it can do.
// None of its requests is refused, and every right that it was given was needed. Members at the broker likewise.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditLine } from './audit.ts';
import { dnsFlow, exportFlow, type FlowWorld, installFlow, joinFlow, peeringFlow } from './flows.ts';
import { grantedTo } from './granted.ts';
import { type FlowHome, startFlowHome, system } from './homes.ts';
import { RunningParts } from './parts.ts';
import { situations } from './situations.ts';
import { type Granted, unusedRights } from './unused-rights.ts';

describe('rights on Kubernetes', () => {
  const parts = new RunningParts({ podsOf: 'west' });
  let world: FlowWorld;
  let unusedByMembers: string[] = ['not read yet'];

  beforeAll(async () => {
    const [broker, east, west] = await Promise.all(
      ['broker', 'east', 'west'].map((name) => startFlowHome('real', name)),
    );
    world = { broker: broker!, east: east!, west: west!, parts, more: [] };
  });
  afterAll(async () => {
    await parts.stop();
    await Promise.all([world?.broker, world?.east, world?.west, ...(world?.more ?? [])].map((home) => home?.stop()));
  });

  test('the flows -> work with the accounts of the parts', async () => {
    await installFlow(world);
    await joinFlow(world);
    await exportFlow(world);
    const resolvers = await dnsFlow(world);
    await peeringFlow(world, resolvers.get('west')!);
  });

  test.each(situations)('%s', (_title, make) => make(world));

  test('all along -> no request of a part or member was refused', () => {
    for (const home of [world.broker, world.east, world.west])
      expect([home.name, home.refusals()]).toEqual([home.name, []]);
  });

  test('both members leave, all parts end -> their Leases are gone', async () => {
    // Read first: the roles go with the members.
    const granted = memberRoles(world);
    for (const home of [world.east, world.west]) {
      await home.type('leave');
      await Promise.all(parts.of(home).map((part) => parts.end(part)));
      expect(home.kubectl(`get leases -n ${system} -l portolan.dev/part -o name`)).toBe('');
    }
    unusedByMembers = unusedOf(world, granted);
  });

  test.each(['agent', 'dns', 'proxy', 'peering', 'xds', 'authority', 'ingress', 'envoy'])(
    '%s -> used every right that it has',
    (part) => {
      const account = { namespace: system, name: `portolan-${part}` };
      const lines = [world.east, world.west].flatMap((home) => linesOf(home, account));
      const unused = unusedRights(grantedTo(world.east, account), lines, system);
      expect(unused.filter((text) => !ofKernelMode.test(text) && !ofNetworks.test(text))).toEqual([]);
    },
  );

  test("the dashboard's viewer -> used every right that it has; the dashboard's own account nothing", () => {
    const homes = [world.broker, world.east, world.west];
    const viewer = { namespace: system, name: 'portolan-dashboard' };
    const lines = homes.flatMap((home) => linesOf(home, viewer));
    expect(unusedRights(grantedTo(world.east, viewer), lines, system)).toEqual([]);
    const server = { namespace: system, name: 'portolan-dashboard-server' };
    expect(homes.flatMap((home) => linesOf(home, server))).toEqual([]);
  });

  test('the authority of a federation at the broker -> used every right that it has', () => {
    const account = { namespace: 'prod', name: 'portolan-federation.world' };
    const granted = grantedTo(world.broker, account);
    expect(granted).not.toEqual([]);
    const unused = unusedRights(granted, linesOf(world.broker, account), '');
    expect(unused.filter((text) => !ofReleaseBefore.test(text))).toEqual([]);
  });

  test('members at the broker -> used every right that they have', () => {
    expect(unusedByMembers.filter((text) => !ofReleaseBefore.test(text))).toEqual([]);
  });
});

/**
 * Proxies that write the rules of a node's kernel read exports with `access: Exported` (test/access-node.test.ts, with this
 * account), and the Pods of their node for flows. The proxy here is one in userspace.
 */
const ofKernelMode = /^portolan:proxy: (get|list|watch) (serviceexports\.multicluster\.x-k8s\.io|pods)$/;

/** Only between networks; gateway.test.ts holds them. */
const ofNetworks = / portolan-xds: update (configmaps portolan-gateway|secrets portolan-gateway-authority)$/;

/** Rights that only agents and authorities of the release before use. */
const ofReleaseBefore =
  /: (get leases\.coordination\.k8s\.io portolan-agent|(list|watch) endpointslices\.discovery\.k8s\.io)$/;

function linesOf(
  home: FlowHome,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): AuditLine[] {
  return home.audit().filter(({ user }) => user.username === `system:serviceaccount:${namespace}:${name}`);
}

function memberRoles({ broker }: FlowWorld): Map<string, Granted[]> {
  return new Map(['east', 'west'].map((name) => [name, grantedTo(broker, { namespace: 'prod-members', name })]));
}

/** Rights that neither of them used. Only one of them writes the merged view; both are the same otherwise. */
function unusedOf({ broker }: FlowWorld, granted: Map<string, Granted[]>): string[] {
  const [first, second] = [...granted].map(([name, roles]) => {
    const own = linesOf(broker, { namespace: 'prod-members', name });
    return unusedRights(roles, own, '').map((text) =>
      text.replaceAll(name, 'ID').replaceAll(/\b(east|west)\b/g, 'OTHER'),
    );
  });
  // North and south have the same role as east and west, and export nothing.
  return first!.filter((text) => second!.includes(text) && !/^prod-m-(north|south) /.test(text));
}
