import { describe, expect, test } from 'vitest';
import { addressClaimType } from '../../src/addresses/address-claim.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { type ServiceShard, serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { importableSinceAnnotation } from '../../src/clusterset/rules/propagation.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { openDesk, typeAt } from '../command.ts';
import { conditionMessage, eventLines, exportLine, find, importLine, sliceLines } from '../look.ts';
import { exportService, service, serviceExport, slice } from '../manifests.ts';

const key = 'shop/checkout';
const ref = { namespace: 'shop', name: 'checkout' };
const allWell = 'Valid=True/Valid Ready=True/Exported Conflict=False/NoConflicts';

async function start(options: { readonly onLog?: (line: string) => void; readonly hasDefinitions?: boolean } = {}) {
  const set = await new SimClusterSet({ clusters: ['east', 'west'], ...options }).start({ namespaces: ['shop'] });
  return { set, east: set.home('east').admin, west: set.home('west').admin };
}

function manyPorts(count: number) {
  return Array.from({ length: count }, (_, index) => ({
    name: `p${index}`,
    port: index + 1,
    protocol: 'TCP' as const,
  }));
}

describe('odd exports', () => {
  test('odd export: a label and annotations that no object can have -> imported without them, the condition and an Event say so', async () => {
    const { set, east, west } = await start();
    await east.create(serviceType, service(key));
    await east.create(endpointSliceType, slice(key, { endpoints: ['10.1.0.1'] }));
    const spec = {
      exportedLabels: { app: 'not valid!', tier: 'web' },
      exportedAnnotations: { note: 'x'.repeat(300_000) },
    };
    await east.create(serviceExportType, serviceExport(key, { spec }));
    await set.time.advance(4_000);
    for (const home of [east, west]) expect(await importLine(home, key)).toBe('ClusterSetIP http:80/TCP from east');
    const imported = await find<ServiceImport>(west, serviceImportType, key);
    expect(imported?.metadata.labels).toMatchObject({ tier: 'web' });
    expect(imported?.metadata.labels).not.toHaveProperty('app');
    expect(await find(set.broker.admin, serviceImportType, `${setName}/checkout.shop`)).toBeDefined();
    expect(await exportLine(east, key)).toBe(allWell);
    const message = await conditionMessage(east, key, 'Ready');
    expect(message).toContain('exported label "app=not valid!" left out');
    expect(message).toContain('exported annotations left out: 300004 bytes');
    expect(await eventLines(east, key)).toContain('Warning PartlyExported');
  });

  test('odd export: put right -> the condition is plain again, and the label arrives', async () => {
    const { set, east, west } = await start();
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    const present = await find<ReturnType<typeof serviceExport>>(east, serviceExportType, key);
    const wrong = await east.update(serviceExportType, {
      ...present!,
      spec: { exportedLabels: { app: 'not valid!' } },
    });
    await set.time.advance(4_000);
    expect(await conditionMessage(east, key, 'Ready')).toContain('left out');
    await east.update(serviceExportType, {
      ...(await find<typeof wrong>(east, serviceExportType, key))!,
      spec: { exportedLabels: { app: 'valid' } },
    });
    await set.time.advance(4_000);
    expect(await conditionMessage(east, key, 'Ready')).toBe('exported to the clusterset');
    expect((await find<ServiceImport>(west, serviceImportType, key))?.metadata.labels).toMatchObject({ app: 'valid' });
  });

  test('odd export: more ports than a record holds -> not exported, Ready says why', async () => {
    const { set, east, west } = await start();
    await exportService(east, key, { endpoints: ['10.1.0.1'], spec: { ports: manyPorts(1001) } });
    await set.time.advance(4_000);
    expect(await exportLine(east, key)).toBe('Valid=True/Valid Ready=False/Failed Conflict=False/NoConflicts');
    expect(await conditionMessage(east, key, 'Ready')).toContain('has 1001 ports, at most 1000 can be exported');
    expect(await importLine(west, key)).toBe('none');
  });

  test('odd export: a wider export is limited to an id that can be none -> withdrawn from everybody else, the condition says so', async () => {
    const { set, east, west } = await start();
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    const annotate = async (annotations: Record<string, string>) => {
      const present = (await find(east, serviceExportType, key))!;
      await east.update(serviceExportType, { ...present, metadata: { ...present.metadata, annotations } });
      await set.time.advance(4_000);
    };
    await annotate({ 'portolan.dev/export-to': 'Not_An_Id' });
    expect(await importLine(west, key)).toBe('none');
    expect(await conditionMessage(east, key, 'Ready')).toContain('"Not_An_Id" cannot be a cluster');
    await annotate({ 'portolan.dev/export-to': 'Not_An_Id,west', 'portolan.dev/on-stale': 'wihdraw' });
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    expect(await conditionMessage(east, key, 'Ready')).toContain('"wihdraw" is none of');
    expect(await eventLines(east, key)).toContain('Warning PartlyExported');
  });

  test('odd export: a slice made anew with addresses of the other family while the agent is down -> published as it is now', async () => {
    const { set, east, west } = await start();
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    set.killAgent('east');
    await east.delete(endpointSliceType, { namespace: 'shop', name: 'checkout-a' });
    await east.create(endpointSliceType, slice(key, { endpoints: ['fd00:1::1'], addressType: 'IPv6' }));
    set.startAgent('east');
    await set.time.advance(8_000);
    expect(await exportLine(east, key)).toBe(allWell);
    for (const home of [east, west]) expect(await sliceLines(home, key)).toEqual(['east: fd00:1::1 on http>8080']);
  });
});

describe('odd records', () => {
  /** As a member would write that does not keep to the definition, at a broker that does not check. */
  async function writeUnchecked(
    set: SimClusterSet,
    change: (spec: ServiceShard['spec']) => void,
    record = 'checkout.shop',
  ): Promise<void> {
    const name = { namespace: memberNamespace('west'), name: record };
    const present = await set.broker.admin.get<ServiceShard>(serviceShardType, name);
    change(present.spec);
    await set.broker.admin.update(serviceShardType, present);
  }

  test('odd record: a member exports a label that no object can have -> readers leave it out and import the rest', async () => {
    const { set, east, west } = await start();
    await exportService(west, key, { endpoints: ['10.2.0.1'] });
    await set.time.advance(4_000);
    set.killAgent('west');
    await writeUnchecked(set, (spec) => {
      spec.exportedLabels = { app: 'not valid!', tier: 'web' };
      spec.exportedAnnotations = { 'not/a/key': 'x', big: 'x'.repeat(262_144) };
    });
    await set.time.advance(4_000);
    const imported = await find<ServiceImport>(east, serviceImportType, key);
    expect(imported?.metadata.labels).toMatchObject({ tier: 'web' });
    expect(Object.keys(imported?.metadata.annotations ?? {})).toEqual([importableSinceAnnotation]);
  });

  test('odd record: written before anybody imported it -> imported all the same, and its address is given back afterwards', async () => {
    const { set, east, west } = await start();
    set.killAgent('east');
    await exportService(west, key, { endpoints: ['10.2.0.1'] });
    await set.time.advance(4_000);
    set.killAgent('west');
    await writeUnchecked(set, (spec) => {
      spec.exportedLabels = { app: 'not valid!' };
    });
    set.startAgent('east');
    await set.time.advance(4_000);
    expect(await importLine(east, key)).toBe('ClusterSetIP http:80/TCP from west');
    await west.delete(serviceExportType, ref);
    set.startAgent('west');
    await set.time.advance(4_000);
    const claims = (await east.list(addressClaimType)).items as { spec?: { releasedAt?: string } }[];
    expect(claims.map(({ spec }) => typeof spec?.releasedAt)).toEqual(['string']);
  });

  test('odd record: more ports than a record may have, at a broker that does not check -> not counted, the others are; status and explain say so', async () => {
    const { set, east, west } = await start({ hasDefinitions: true });
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await exportService(west, key, { endpoints: ['10.2.0.1'] });
    await exportService(west, 'shop/only', { endpoints: ['10.2.0.2'] });
    await set.time.advance(4_000);
    set.killAgent('west');
    await liftPortLimit(set);
    for (const name of ['checkout', 'only']) {
      await writeUnchecked(set, (spec) => Object.assign(spec, { ports: manyPorts(1001) }), `${name}.shop`);
    }
    await set.time.advance(4_000);
    expect(await importLine(east, key)).toBe('ClusterSetIP http:80/TCP from east');
    const desk = await openDesk(set, 'east');
    const type = async (words: string) => (await set.time.settle(typeAt(desk, words))).join('\n');
    expect(await type('status')).toMatch(
      /^not counted: the record of shop\/checkout by west has 1001 ports, more than 1000$/m,
    );
    expect(await type(`explain ${key}`)).toMatch(/^west .* no, its record has 1001 ports, more than 1000 /m);
    await expect(type('explain shop/only')).rejects.toThrow(
      'service shop/only is withdrawn: cluster west exports it, and its record has 1001 ports, more than 1000',
    );
  });
});

const definitionType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  isNamespaced: false,
};

/** The definition of ServiceShard as a broker may have it that was laid out before there was a limit. */
async function liftPortLimit(set: SimClusterSet): Promise<void> {
  const definition = await set.broker.admin.get(definitionType, { name: 'serviceshards.portolan.dev' });
  const text = JSON.stringify(definition).replaceAll('"maxItems":1000', '"maxItems":100000');
  await set.broker.admin.update(definitionType, JSON.parse(text));
  await set.time.advance(1_000);
}
