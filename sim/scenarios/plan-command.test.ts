import { describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { previewChanges } from '../../src/clusterset/explain/preview-change.ts';
import type { ServiceExport } from '../../src/clusterset/kinds/service-export.ts';
import { serviceImportPolicyType } from '../../src/clusterset/kinds/service-import-policy.ts';
import { readSetPolicy } from '../../src/clusterset/rules/set-policy.ts';
import { keepPartLease } from '../../src/kube/controller/part-lease.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { createNamespace, SimClusterSet } from '../clusterset.ts';
import { type CommandDesk, openDesk, typeAt } from '../command.ts';
import { exportService, service, serviceExport } from '../manifests.ts';

interface Bench {
  readonly set: SimClusterSet;
  readonly desk: CommandDesk;
  readonly requests: string[];
  readonly plan: (file: string) => Promise<string[]>;
}

async function start(): Promise<Bench> {
  const requests: string[] = [];
  const onRequest = (home: string, user: string) => {
    if (user === 'admin' || home === 'broker') requests.push(home);
  };
  const set = await new SimClusterSet({ clusters: ['east', 'west'], onRequest }).start({ namespaces: ['shop'] });
  await set.time.advance(4_000);
  const desk = await openDesk(set, 'east');
  const plan = (file: string) => {
    desk.files.set('file.yaml', file);
    return set.time.settle(typeAt(desk, 'plan -f file.yaml'));
  };
  return { set, desk, requests, plan };
}

describe('plan', () => {
  test('plan: a List without items, with null, with something that is no object -> nothing to plan, or said what is wrong', async () => {
    const { plan } = await start();
    const nothing = 'there is no ServiceExport, Service, ServiceExportPolicy or ServiceImportPolicy in it';
    await expect(plan('apiVersion: v1\nkind: List\n')).rejects.toThrow(nothing);
    await expect(plan('apiVersion: v1\nkind: List\nitems:\n')).rejects.toThrow(nothing);
    await expect(plan('apiVersion: v1\nkind: List\nitems: 5\n')).rejects.toThrow('document 1: items is not a list');
    const noObject = 'document 1 is not an object with apiVersion, kind and metadata.name';
    await expect(plan('apiVersion: v1\nkind: List\nitems: [null]\n')).rejects.toThrow(noObject);
    await expect(plan('just text')).rejects.toThrow(noObject);
  });

  test('plan: a ServiceImportPolicy -> who would serve each import, under which name, and what would be refused', async () => {
    const { set, desk, plan } = await start();
    const west = set.home('west').admin;
    await createNamespace(set.home('east'), 'portolan-system').catch(() => {});
    const world = set.simulation.world('node-east');
    keepPartLease({ client: set.home('east').clientOf(world), world, log: silentLog, part: 'proxy', id: 'node-1' });
    await exportService(west, 'shop/checkout', { endpoints: ['10.2.0.1'] });
    await exportService(west, 'shop/cart', { endpoints: ['10.2.0.2'] });
    await set.home('east').admin.create(serviceType, service('shop/cart'));
    await set.time.advance(4_000);
    const policy = (spec: object) => ({
      ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceImportPolicy' },
      ...{ metadata: { name: 'moving' }, spec: { namespaces: ['shop'], ...spec } },
    });
    const planned = async (spec: object) => (await plan(JSON.stringify(policy(spec)))).join('\n');
    const weights = await planned({ services: ['cart'], clusters: [{ clusters: ['west'], weight: 5 }] });
    expect(weights).toContain('import of shop/cart, by policy moving\n  served by: west 5 %; now: all clusters alike');
    expect(weights).toContain('1 import would change; nothing was changed');
    const both = await planned({ services: ['cart', 'checkout'], importAs: 'Transparent' });
    expect(both).toContain('checkout.shop.svc.cluster.local would lead to the clusterset');
    expect(both).toContain('rewrite name exact checkout.shop.svc.cluster.local checkout.shop.svc.clusterset.local');
    expect(both).toContain('not transparent: shop/cart: Service shop/cart of cluster east is not exported');
    expect(desk.exitCode).toBe(7);
    expect(await planned({ accept: false })).toContain('would not be imported here any more');
    expect(await planned({ services: ['cart'], importAs: 'bank/*' })).toContain(
      'would be imported as bank/cart, now as shop/cart',
    );
    expect(await planned({ clusters: [{ clusters: ['west'], weight: 0 }] })).toContain('all weights are 0');
    expect((await set.home('east').admin.list(serviceImportPolicyType)).items).toEqual([]);
  });

  test('plan: a folder -> said, with what to do', async () => {
    const { set, desk } = await start();
    const { readText } = desk.deps.host;
    Object.assign(desk.deps.host, {
      readText: async (path: string) => {
        if (path === 'folder') throw Object.assign(new Error('EISDIR'), { code: 'EISDIR' });
        return readText(path);
      },
    });
    await expect(set.time.settle(typeAt(desk, 'plan -f folder'))).rejects.toThrow(
      '-f folder: is a folder; give one file',
    );
  });

  test('plan: what agents would leave out of an export -> said, as they would', async () => {
    const { set, plan } = await start();
    await exportService(set.home('east').admin, 'shop/checkout', { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    const spec = { exportedLabels: { app: 'not valid!' } };
    const annotations = { 'portolan.dev/export-to': 'Not_An_Id', 'portolan.dev/on-stale': 'wihdraw' };
    const lines = (await plan(JSON.stringify(serviceExport('shop/checkout', { spec, annotations })))).join('\n');
    expect(lines).toContain('exported label "app=not valid!" left out');
    expect(lines).toContain('"Not_An_Id" cannot be a cluster');
    expect(lines).toContain('"wihdraw" is none of');
  });

  test('plan: hundreds of exports -> one request for each that the home must complete, and lists for the rest', async () => {
    const { requests, plan } = await start();
    const count = 400;
    const items = Array.from({ length: count }, (_, index) => [
      serviceExport(`shop/s${index}`),
      service(`shop/s${index}`),
    ]).flat();
    requests.length = 0;
    const lines = await plan(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    expect(lines.at(-1)).toContain(`${count} exports in cluster east of clusterset prod: ${count} fine`);
    expect(requests.length).toBeLessThan(2 * count + 60);
  });

  test('plan: many services are previewed -> what lies in the clusters is gone through once before and once after', () => {
    let walks = 0;
    class Counted extends Map<string, ServiceExport> {
      override [Symbol.iterator](): MapIterator<[string, ServiceExport]> {
        walks += 1;
        return super[Symbol.iterator]();
      }
    }
    const keys = Array.from({ length: 50 }, (_, index) => `shop/s${index}`);
    const home = {
      id: 'east',
      verdict: 'alive' as const,
      namespaces: new Set(['shop']),
      services: new Map(keys.map((key) => [key, service(key)])),
      exports: new Counted(keys.map((key) => [key, serviceExport(key)])),
      slices: [],
    };
    const set = { apiVersion: '', kind: '', metadata: { name: 'prod' } };
    const state = { set, policy: readSetPolicy(undefined), members: [], older: new Map() };
    walks = 0;
    const prediction = previewChanges({ state, present: home, next: home }, keys);
    expect(prediction.map((one) => one.conditions?.[1]?.reason)).toEqual(keys.map(() => 'NoReadyEndpoints'));
    expect(walks).toBeLessThanOrEqual(2);
  });
});
