// The commands about networks, at the broker of a simulated clusterset.

import { describe, expect, test } from 'vitest';
import { type Cluster, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { heartbeatType } from '../../src/clusterset/kinds/heartbeat.ts';
import { memberRecord } from '../../src/clusterset/membership/member-record.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { openDesk, typeAt } from '../command.ts';

/** Both have the same pods; east reports a network and a gateway. */
async function joined(pods: Record<string, string> = { east: '10.1.0.0/16', west: '10.1.0.0/16' }) {
  const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start();
  for (const [id, range] of Object.entries(pods)) {
    const place = { homeUid: id, joinedAt: '', region: '', zone: '', podRanges: [range], serviceRanges: [] };
    const { object } = memberRecord(memberNamespace(id), { ...place, ...(id === 'east' ? { network: 'aws' } : {}) });
    await set.broker.admin.create(configMapType, object);
  }
  await set.home('east').admin.create(configMapType, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'portolan-gateway', namespace: 'portolan-system' },
    data: { gateways: '203.0.113.7:15443' },
  } as ConfigMap);
  await set.time.advance(20_000);
  const desk = await openDesk(set, 'broker');
  const east = async () =>
    (await set.broker.admin.get<Cluster>(clusterType, { namespace: setName, name: 'east' })).spec;
  const accept = (words: string) =>
    set.time.settle(typeAt(desk, `broker accept east --clusterset prod --no-ranges ${words}`.trim()));
  return { set, desk, east, accept };
}

describe('broker accept: networks', () => {
  test('broker accept: a member reported a network and a gateway -> both are the admin’s word from then on, and shown', async () => {
    const { east, accept } = await joined();
    expect(await accept('')).toEqual([
      'cluster east: region -, zone -, ranges any (updated)',
      'cluster east: network aws, gateways 203.0.113.7:15443, in accepted ranges 203.0.113.7/32',
    ]);
    expect(await east()).toMatchObject({ network: 'aws', gatewayRanges: ['203.0.113.7/32'] });
  });

  test('broker accept: ranges without the reported gateway -> said that it is refused and why', async () => {
    const { accept } = await joined();
    expect((await accept('--gateway-range 198.51.100.0/24')).slice(1)).toEqual([
      'cluster east: network aws, gateways none, in accepted ranges 198.51.100.0/24',
      'cluster east: gateway 203.0.113.7 port 15443 is refused: it is outside the accepted gateway ranges of this cluster',
    ]);
  });

  test('broker accept: an agent of an earlier release in the set -> refused and named; nothing is written', async () => {
    const { set, east, accept } = await joined();
    set.killAgent('west');
    const ref = { namespace: memberNamespace('west'), name: 'portolan-agent' };
    const body = { metadata: { annotations: { 'portolan.dev/features': null } } };
    await set.broker.admin.patch(heartbeatType, ref, { kind: 'merge', body });
    await expect(accept('')).rejects.toThrow(
      'network aws: the agents of west are of a release that knows no networks and would connect to addresses of another network; upgrade them first',
    );
    expect((await east()).network).toBeUndefined();
  });

  test('broker accept: pods of two members overlap in the wanted network -> refused, both named; in another network they may', async () => {
    const { east, accept } = await joined();
    await accept('');
    await expect(accept('--network default')).rejects.toThrow(
      'cluster east cannot be in network default: 10.1.0.0/16 (pods of cluster east) overlaps 10.1.0.0/16 (pods of cluster west)',
    );
    expect((await east()).network).toBe('aws');
    expect(await accept('--network lab')).toContainEqual(expect.stringContaining('network lab'));
  });

  test('broker accept: a network that is no name -> refused', async () => {
    const { accept } = await joined();
    await expect(accept('--network A_B')).rejects.toThrow('--network "A_B"');
  });
});
