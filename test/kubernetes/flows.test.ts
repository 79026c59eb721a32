// Installing, clusterset, DNS and peering on real API servers, alone and mixed with embedded homes. Every part has its own
// account, and none of its requests is refused.

import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import {
  dnsFlow,
  exportFlow,
  type FlowWorld,
  installFlow,
  joinFlow,
  leaveFlow,
  peeringFlow,
  quotaFlow,
} from './flows.ts';
import { type HomeKind, startFlowHome } from './homes.ts';
import { RunningParts } from './parts.ts';
import { startAuthority } from './situations.ts';

const mixtures: [string, Record<'broker' | 'east' | 'west', HomeKind>][] = [
  ['real broker, real members', { broker: 'real', east: 'real', west: 'real' }],
  ['real broker, an embedded member', { broker: 'real', east: 'real', west: 'embedded' }],
  ['embedded broker, a real member', { broker: 'embedded', east: 'real', west: 'embedded' }],
];

describe.each(mixtures)('%s', (_title, kinds) => {
  const parts = new RunningParts();
  let world: FlowWorld;
  let resolver: Awaited<ReturnType<typeof dnsFlow>>;

  beforeAll(async () => {
    const [broker, east, west] = await Promise.all([
      startFlowHome(kinds.broker, 'broker'),
      startFlowHome(kinds.east, 'east'),
      startFlowHome(kinds.west, 'west'),
    ]);
    world = { broker, east, west, parts, more: [] };
  });
  beforeEach(() => onTestFailed(() => console.error(parts.lastWords())));
  afterAll(async () => {
    await parts.stop();
    await Promise.all([world?.broker, world?.east, world?.west].map((home) => home?.stop()));
  });

  test('install -> accounts and parts, and nothing is changed the second time', () => installFlow(world));
  test('broker init, token, join, agents -> both are members', async () => void (await joinFlow(world)));
  test('export, unexport -> imports with the endpoints of both clusters', () => exportFlow(world));
  test('an export beyond the quota of its cluster -> says so, and nothing of it is at the broker', () =>
    quotaFlow(world));
  test('DNS -> the clusterset name answers in both clusters', async () => {
    resolver = await dnsFlow(world);
  });
  test('an authority with an account at the broker -> its zone reaches the resolvers', () => startAuthority(world));
  test('peering -> a shared service has a name in the other mesh until it is withdrawn', () =>
    peeringFlow(world, resolver.get('west')!));
  test('delete the namespace, leave -> nothing is left of the members', () => leaveFlow(world));
  test('all along -> no request of a part or member was refused', () => {
    // The quota refused it; the log of an embedded home does not tell that from a missing right.
    const isQuota = (line: string) => /\/east create .*\/prod-m-east\/serviceshards$/.test(line);
    for (const home of [world.broker, world.east, world.west])
      expect([home.name, home.refusals().filter((line) => !isQuota(line))]).toEqual([home.name, []]);
  });
});
