import { describe, expect, test } from 'vitest';
import {
  type ClusterProperty,
  clusterIdProperty,
  clusterPropertyType,
} from '../../src/clusterset/kinds/cluster-property.ts';
import { eventType, type KubernetesEvent } from '../../src/kube/objects/event.ts';
import { SimClusterSet, setName } from '../clusterset.ts';
import { find } from '../look.ts';

async function properties(set: SimClusterSet, id: string): Promise<string[]> {
  const { items } = await set.home(id).admin.list<ClusterProperty>(clusterPropertyType);
  return items.map(({ metadata, spec }) => `${metadata.name}=${spec.value}`).sort();
}

const east = ['cluster.clusterset.k8s.io=east.eu', `clusterset.k8s.io=${setName}`];

describe('identity', () => {
  test('identity: edited or deleted while the cluster is a member -> put back, and its labels stay', async () => {
    const set = await new SimClusterSet({ clusters: ['east.eu', 'west'] }).start();
    await set.time.advance(2_000);
    expect(await properties(set, 'east.eu')).toEqual(east);
    const { admin } = set.home('east.eu');
    const body = { metadata: { labels: { mine: 'yes' } }, spec: { value: 'west' } };
    await admin.patch(clusterPropertyType, { name: clusterIdProperty }, { kind: 'merge', body });
    await set.time.advance(2_000);
    expect(await properties(set, 'east.eu')).toEqual(east);
    const { items } = await admin.list<KubernetesEvent>(eventType, { namespace: 'default' });
    expect(items.map(({ reason, message }) => `${reason}: ${message}`)).toEqual([
      'PropertyPutBack: changed from west back to east.eu; to use another id, leave the clusterset and join again',
    ]);
    const kept = await find<ClusterProperty>(admin, clusterPropertyType, `/${clusterIdProperty}`);
    expect(kept?.metadata.labels).toMatchObject({ mine: 'yes' });
    await admin.delete(clusterPropertyType, { name: 'clusterset.k8s.io' });
    await set.time.advance(2_000);
    expect(await properties(set, 'east.eu')).toEqual(east);
  });

  test('identity: properties of others -> left alone', async () => {
    const set = await new SimClusterSet({ clusters: ['east.eu'] }).start();
    const { admin } = set.home('east.eu');
    const metadata = { name: 'fingerprint.example.org' };
    const own = { apiVersion: 'about.k8s.io/v1beta1', kind: 'ClusterProperty', metadata, spec: { value: 'a' } };
    await admin.create(clusterPropertyType, own);
    await set.time.advance(2_000);
    expect(await properties(set, 'east.eu')).toEqual([...east, 'fingerprint.example.org=a']);
  });
});
