import { expect, test } from 'vitest';
import { memberQuotaObject } from '../../src/clusterset/membership/broker-objects.ts';
import type { ResourceQuota } from '../../src/kube/objects/resource-quota.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { conditionMessage, exportLine, importLine } from '../look.ts';
import { exportService } from '../manifests.ts';

test('quota: a member exports more than its quota -> the one too many says QuotaExceeded; with more room it is exported', async () => {
  const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
  const { type, object } = memberQuotaObject({ clusterset: setName, id: 'east', spec: {}, quota: { services: 2 } });
  const namespace = memberNamespace('east');
  await set.broker.admin.create(type, { ...object, metadata: { ...object.metadata, namespace } });
  const east = set.home('east').admin;
  for (const name of ['a', 'b']) await exportService(east, `shop/${name}`, { endpoints: ['10.1.0.1'] });
  await set.time.advance(4_000);
  await exportService(east, 'shop/c', { endpoints: ['10.1.0.2'] });
  await set.time.advance(4_000);
  const west = set.home('west').admin;
  expect(await importLine(west, 'shop/a')).toContain('from east');
  expect(await importLine(west, 'shop/c')).toBe('none');
  expect(await exportLine(east, 'shop/c')).toContain('Ready=False/QuotaExceeded');
  expect(await conditionMessage(east, 'shop/c', 'Ready')).toMatch(
    /exceeded quota: portolan-member, .*limited: count\/serviceshards.portolan.dev=2; export less, or ask the admin/,
  );
  const quota = await set.broker.admin.get<ResourceQuota>(type, { namespace, name: object.metadata.name });
  expect(quota.status?.used?.['count/serviceshards.portolan.dev']).toBe('2');
  const hard = { ...quota.spec?.hard, 'count/serviceshards.portolan.dev': '3' };
  await set.broker.admin.update(type, { ...quota, spec: { hard } });
  await set.time.advance(60_000);
  expect(await exportLine(east, 'shop/c')).toContain('Ready=True/Exported');
  expect(await importLine(west, 'shop/c')).toContain('from east');
});
