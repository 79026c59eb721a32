// The commands about access, at the broker of a simulated clusterset.

import { expect, test } from 'vitest';
import { type Cluster, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { memberRecord } from '../../src/clusterset/membership/member-record.ts';
import { configMapType } from '../../src/kube/objects/config-map.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { openDesk, typeAt } from '../command.ts';

async function joined(sources: Record<string, string[]>) {
  const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start();
  for (const [id, sourceRanges] of Object.entries(sources)) {
    const place = { homeUid: id, joinedAt: '', region: '', zone: '', podRanges: [], serviceRanges: [] };
    await set.broker.admin.create(configMapType, memberRecord(memberNamespace(id), { ...place, sourceRanges }).object);
  }
  const desk = await openDesk(set, 'broker');
  const type = (words: string) => set.time.settle(typeAt(desk, `broker ${words} --clusterset prod`));
  const sourcesOf = async (name: string) =>
    (await set.broker.admin.get<Cluster>(clusterType, { namespace: setName, name })).spec.sourceRanges;
  return { type, sourcesOf };
}

test('broker accept: a member reported source ranges -> they are the admin’s word from then on; another word replaces them', async () => {
  const { type, sourcesOf } = await joined({ east: ['10.1.0.0/16', '192.0.2.7/32'] });
  expect(await type('accept east')).toContain('cluster east: packets come from 10.1.0.0/16, 192.0.2.7/32');
  expect(await sourcesOf('east')).toEqual(['10.1.0.0/16', '192.0.2.7/32']);
  await type('accept east --source-range 10.1.0.0/17');
  expect(await sourcesOf('east')).toEqual(['10.1.0.0/17']);
  await type('accept east');
  expect(await sourcesOf('east')).toEqual(['10.1.0.0/17']);
});

test('broker accept: source ranges that another member has -> refused, both named, nothing is written', async () => {
  const { type, sourcesOf } = await joined({ east: ['10.1.0.0/16'], west: ['10.1.128.0/17'] });
  await type('accept east');
  await expect(type('accept west')).rejects.toThrow(
    'cluster west: source range 10.1.128.0-10.1.255.255 belongs to east, west',
  );
  expect(await sourcesOf('west')).toBeUndefined();
});
