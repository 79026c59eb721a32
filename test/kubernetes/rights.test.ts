// Least privilege, by the audit logs of real API servers: every part, with the token of its own account, does all it can do.
// None of its requests is refused, and every right that it was given was needed. Members at the broker likewise.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dnsFlow, exportFlow, type FlowWorld, installFlow, joinFlow, peeringFlow } from './flows.ts';
import { grantedTo } from './granted.ts';
import { startFlowHome, system } from './homes.ts';
import { RunningParts } from './parts.ts';
import { situations } from './situations.ts';
import { type Granted, unusedRights } from './unused-rights.ts';

describe('rights on Kubernetes', () => {
  const parts = new RunningParts();
  let world: FlowWorld;
  let unusedByMembers: string[] = ['not read yet'];

  beforeAll(async () => {
    const [broker, east, west] = await Promise.all(
      ['broker', 'east', 'west'].map((name) => startFlowHome('real', name)),
    );
    world = { broker: broker!, east: east!, west: west!, parts };
  });
  afterAll(async () => {
    await parts.stop();
    await Promise.all([world?.broker, world?.east, world?.west].map((home) => home?.stop()));
  });

  test('the flows -> work with the accounts of the parts', async () => {
    await installFlow(world);
    await joinFlow(world);
    await exportFlow(world);
    const resolvers = await dnsFlow(world);
    await peeringFlow(world, resolvers.get('west')!);
  });

  test.each(situations)('%s', (_title, make) => make(world));

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

  test('all along -> no request of a part or member was refused', () => {
    for (const home of [world.broker, world.east, world.west])
      expect([home.name, home.refusals()]).toEqual([home.name, []]);
  });

  test.each(['agent', 'dns', 'proxy', 'peering', 'xds', 'authority', 'ingress', 'envoy'])(
    '%s -> used every right that it has',
    (part) => {
      const account = { namespace: system, name: `portolan-${part}` };
      const mine = `system:serviceaccount:${system}:${account.name}`;
      const lines = [world.east, world.west]
        .flatMap((home) => home.audit())
        .filter(({ user }) => user.username === mine);
      expect(unusedRights(grantedTo(world.east, account), lines, system)).toEqual([]);
    },
  );

  test('members at the broker -> used every right that they have', () => {
    expect(unusedByMembers).toEqual([]);
  });
});

function memberRoles({ broker }: FlowWorld): Map<string, Granted[]> {
  return new Map(['east', 'west'].map((name) => [name, grantedTo(broker, { namespace: 'prod-members', name })]));
}

/** Rights that neither of them used. Only one of them writes the merged view; both are the same otherwise. */
function unusedOf({ broker }: FlowWorld, granted: Map<string, Granted[]>): string[] {
  const lines = broker.audit();
  const [first, second] = [...granted].map(([name, roles]) => {
    const own = lines.filter(({ user }) => user.username === `system:serviceaccount:prod-members:${name}`);
    return unusedRights(roles, own, '').map((text) =>
      text.replaceAll(name, 'ID').replaceAll(/\b(east|west)\b/g, 'OTHER'),
    );
  });
  return first!.filter((text) => second!.includes(text));
}
