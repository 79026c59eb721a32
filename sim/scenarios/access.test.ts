import { expect, test } from 'vitest';
import { type Cluster, type ClusterSpec, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { type ClusterSet, clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { readAccess } from '../../src/clusterset/rules/access/set-access.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { SimClusterSet, setName } from '../clusterset.ts';

const ref = { namespace: 'portolan-system', name: 'portolan-clusterset-dns' };
const ownRef = { namespace: 'portolan-system', name: 'portolan-access' };

async function start() {
  const ranges: Record<string, Partial<ClusterSpec>> = { west: { sourceRanges: ['10.2.0.0/16'] } };
  const set = await new SimClusterSet({
    clusters: ['east', 'west', 'north'],
    set: { access: 'Exported' },
    member: (id) => ranges[id] ?? {},
  }).start();
  await set.time.advance(3000);
  const { admin } = set.broker;
  return {
    set,
    access: async (id: string) => {
      await set.time.advance(3000);
      return readAccess(await set.home(id).admin.get<ConfigMap>(configMapType, ref));
    },
    setMode: async (access: string) => {
      const present = await admin.get<ClusterSet>(clusterSetType, { namespace: setName, name: setName });
      await admin.update(clusterSetType, { ...present, spec: { ...present.spec, access } } as ClusterSet);
    },
    setSources: async (id: string, sourceRanges: string[]) => {
      const present = await admin.get<Cluster>(clusterType, { namespace: setName, name: id });
      await admin.update(clusterType, { ...present, spec: { ...present.spec, sourceRanges } } as Cluster);
    },
  };
}

test('access: the set says Exported -> each home has the mode and the sources of the others, and again when one changes', async () => {
  const { access, setSources } = await start();
  expect(await access('east')).toMatchObject({
    mode: 'Exported',
    sources: new Map([
      ['north', []],
      ['west', ['10.2.0.0/16']],
    ]),
  });
  await setSources('north', ['10.3.0.0/16']);
  expect((await access('east'))?.sources.get('north')).toEqual(['10.3.0.0/16']);
});

test("access: a home's own setting is stricter -> no broker admin opens it; taken back -> the set's holds", async () => {
  const { set, access, setMode } = await start();
  const { admin } = set.home('east');
  const own = { apiVersion: 'v1', kind: 'ConfigMap', metadata: ownRef, data: { access: 'Audit' } };
  await admin.create(configMapType, own);
  await setMode('Open');
  expect([(await access('east'))?.mode, (await access('west'))?.mode]).toEqual(['Audit', 'Open']);
  await admin.delete(configMapType, ownRef);
  expect((await access('east'))?.mode).toBe('Open');
});
