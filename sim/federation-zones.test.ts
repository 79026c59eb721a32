import { expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { type Federation, federationType } from '../src/federation/kinds/federation.ts';
import { followFederationZones } from '../src/federation/zones.ts';
import { SimClusterSet, setName } from './clusterset.ts';

test('zones of federations: with a suffix, with none, in another clusterset, deleted -> those of this set, as they are now', async () => {
  const set = await new SimClusterSet({ clusters: ['east'] }).start({ agents: [] });
  const world = set.simulation.world('reader');
  const broker = set.broker.clientOf(world);
  const zones = followFederationZones({ world, log: silentLog, broker, clusterset: setName });
  let changes = 0;
  zones.onChanged(() => changes++);
  const federation = (name: string, suffix?: string, namespace = setName) => ({
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Federation',
    metadata: { name, namespace },
    spec: { suffix },
  });
  const { admin } = set.broker;
  await admin.create<Federation>(federationType, federation('world', 'world.example'));
  await admin.create<Federation>(federationType, federation('plain'));
  await admin.create<Federation>(federationType, federation('other', 'other.example', 'default'));
  await set.time.advance(2_000);
  expect(zones.current()).toEqual(['federation', 'world.example']);
  expect(zones.authorities()).toEqual({});
  const ref = { namespace: setName, name: 'world' };
  const status = { authority: { caBundle: 'UEVN' } };
  await admin.patch(federationType, ref, { kind: 'merge', body: { status } }, { subresource: 'status' });
  await set.time.advance(2_000);
  expect(zones.authorities()).toEqual({ world: 'UEVN' });
  await admin.delete(federationType, ref);
  await set.time.advance(2_000);
  expect(zones.current()).toEqual(['federation']);
  expect(changes).toBe(4);
  zones.stop();
});
