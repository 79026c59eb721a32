import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type MembershipRecord, membershipSecret, readMembership } from '../membership/membership.ts';
import { keepWithMembership, startAuthorityRenewal } from './authority-renewal.ts';

const membership: MembershipRecord = {
  clusterset: 'prod',
  clusterId: 'east',
  namespace: 'prod-m-east',
  accountNamespace: 'prod-members',
  accountName: 'east',
  server: 'https://broker:6443',
  certificateAuthority: '-----BEGIN CERTIFICATE-----\nold\n',
  token: 't',
  tokenIssuedAt: '2026-01-01T00:00:00Z',
  tokenExpiresAt: '2026-01-02T00:00:00Z',
};

test('authority renewal: the broker names another authority -> kept with the membership; anything else changes nothing', async () => {
  const simulation = new Simulation({ seed: 1 });
  const world = simulation.world('agent');
  const virtual = await startHome(simulation);
  const home = createClient({ send: virtual.api.handle, close: () => {} }, { world, userAgent: 'test' });
  const { object } = membershipSecret(membership);
  await home.create(secretType, object);
  const kept = async () => readMembership(await home.get<Secret>(secretType, object.metadata)).certificateAuthority;
  let answer: unknown = { certificates: membership.certificateAuthority };
  const broker = { getPath: async () => answer } as unknown as Client;
  const renewal = startAuthorityRenewal({
    ...{ broker, world, log: silentLog },
    current: () => membership.certificateAuthority,
    keep: (certificates) => keepWithMembership(home, membership, certificates),
  });
  for (const wrong of [answer, { certificates: 'no certificate' }, { certificates: 7 }, {}]) {
    answer = wrong;
    await simulation.time.advance(21_000);
    expect(await kept()).toBe(membership.certificateAuthority);
  }
  const both = `${membership.certificateAuthority}-----BEGIN CERTIFICATE-----\nnew\n`;
  answer = { certificates: both };
  await simulation.time.advance(21_000);
  expect(await kept()).toBe(both);
  renewal.stop();
});
