import { expect, test } from 'vitest';
import { Simulation } from '../../sim/virtual-world.ts';
import { silentLog } from '../base/log.ts';
import type { Client } from '../kube/client/client.ts';
import type { InformerReader } from '../kube/controller/informer.ts';
import type { Federation } from './kinds/federation.ts';
import { FollowedTrust, type TrustedServers } from './trust.ts';

test('trust: a resolver took the stub zone at its address -> it may name its cluster from there; failed ones and names may not', async () => {
  const simulation = new Simulation({ seed: 1 });
  const federation: Federation = {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Federation',
    metadata: { name: 'world', namespace: 'prod' },
    spec: { source: { ranges: ['10.9.0.0/16'] } },
    status: {
      stubZones: [
        { cluster: 'east', state: 'Posted', endpoint: 'https://10.1.0.5:8553' },
        { cluster: 'north', state: 'Posted', endpoint: 'https://[fd00::5]:8553' },
        { cluster: 'south', state: 'Failed', endpoint: 'https://10.3.0.5:8553' },
        { cluster: 'west', state: 'Posted', endpoint: 'https://resolver.west.example' },
      ],
    },
  };
  let listener: (key: string, next: Federation | undefined) => void = () => {};
  const federations = {
    get: () => federation,
    on: (added: typeof listener) => {
      listener = added;
      return () => {};
    },
  } as unknown as InformerReader<Federation>;
  let trusted: TrustedServers | undefined;
  const followed = new FollowedTrust({
    ...{ world: simulation.world('authority'), log: silentLog, federation: 'world', federations },
    broker: { client: {} as Client, clusterset: 'prod' },
    given: { trusted: { ranges: ['127.0.0.1/32'], identities: [] }, keys: [] },
    setTrust: (next) => (trusted = next),
  });
  listener('prod/world', federation);
  await simulation.time.advance(10);
  expect(trusted?.trusted.ranges).toEqual(['127.0.0.1/32', '10.9.0.0/16', '10.1.0.5', 'fd00::5']);
  followed.stop();
});
