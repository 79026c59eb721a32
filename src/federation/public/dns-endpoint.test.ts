import { describe, expect, test } from 'vitest';
import { SimHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { type Federation, federationType } from '../kinds/federation.ts';
import { DnsEndpointProvider, dnsEndpointType } from './dns-endpoint.ts';
import { runOnce } from './publisher.ts';
import { dnsEndpointDefinition } from './testing/dns-endpoint-definition.ts';
import type { PublicSet } from './wanted.ts';

const name = 'checkout.shop.example.org';
const ref = { namespace: 'prod', name };
const definitionType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
};

async function start(options: { readonly hasKind: boolean } = { hasKind: true }) {
  const simulation = new Simulation({ seed: 1 });
  const home = new SimHome({
    ...{ simulation, name: 'broker', serviceRanges: ['10.96.0.0/16'], hasDefinitions: true, mayDo: () => true },
  });
  const { time } = simulation;
  await time.settle(home.start());
  const { admin } = home;
  const metadata = { name: 'prod' };
  await time.settle(admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata }));
  if (options.hasKind) await time.settle(admin.create(definitionType, dnsEndpointDefinition as unknown as AnyObject));
  await time.advance(2_000);
  const federation = await time.settle(
    admin.create<Federation>(federationType, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'Federation',
      metadata: { name: 'world', namespace: 'prod' },
      spec: {},
    }),
  );
  const shared = {
    broker: admin,
    clock: simulation.world('authority').clock,
    namespace: 'prod',
    domain: 'example.org',
  };
  const provider = new DnsEndpointProvider({
    ...{ ...shared, federation: 'world', present: () => federation, owner: 'prod/world', ttlSeconds: 60 },
  });
  const publish = (sets: readonly PublicSet[]) =>
    time.settle(runOnce({ log: silentLog, provider, owner: 'prod/world', ttlSeconds: 60, wanted: () => sets }));
  const all = async () => (await time.settle(admin.list(dnsEndpointType, { namespace: 'prod' }))).items;
  return { time, admin, publish, all, federation };
}

const one = (...values: string[]): PublicSet[] => [{ name, type: 'A', values }];

describe('DNSEndpoint objects', () => {
  test('DNSEndpoint: a public name -> one object, labelled and owned by its Federation; the second run writes nothing', async () => {
    const { time, admin, publish, all, federation } = await start();
    const both: PublicSet[] = [...one('1.0.0.1'), { name, type: 'AAAA', values: ['2001:db8::1'] }];
    expect(await publish(both)).toMatchObject({ written: 1, failed: 0 });
    const [object] = await all();
    expect(object).toMatchObject({
      metadata: {
        name,
        labels: { 'app.kubernetes.io/managed-by': 'portolan', 'portolan.dev/federation': 'world' },
        ownerReferences: [
          { apiVersion: 'portolan.dev/v1alpha1', kind: 'Federation', name: 'world', uid: federation.metadata.uid },
        ],
      },
      spec: {
        endpoints: [
          { dnsName: name, recordType: 'A', targets: ['1.0.0.1'], recordTTL: 60 },
          { dnsName: name, recordType: 'AAAA', targets: ['2001:db8::1'], recordTTL: 60 },
        ],
      },
    });
    expect(await publish(both)).toMatchObject({ written: 0, failed: 0 });
    await time.settle(admin.delete(federationType, { namespace: 'prod', name: 'world' }));
    await time.advance(5_000);
    expect(await all()).toEqual([]);
  });

  test('DNSEndpoint: another address, another type, gone -> the same object changes, then it is gone', async () => {
    const { publish, all } = await start();
    await publish(one('1.0.0.1'));
    await publish([{ name, type: 'CNAME', values: ['lb.example.net'] }]);
    expect(await all()).toMatchObject([
      { spec: { endpoints: [{ recordType: 'CNAME', targets: ['lb.example.net'] }] } },
    ]);
    await publish([]);
    expect(await all()).toEqual([]);
  });

  test("DNSEndpoint: somebody else's object of that name, or with that name in it -> left alone, and a conflict", async () => {
    const { time, admin, publish, all } = await start();
    const theirs = (at: string) => ({
      apiVersion: 'externaldns.k8s.io/v1alpha1',
      kind: 'DNSEndpoint',
      metadata: { namespace: 'prod', name: at },
      spec: { endpoints: [{ dnsName: name, recordType: 'A', targets: ['9.9.9.9'] }] },
    });
    await time.settle(admin.create(dnsEndpointType, theirs('by-hand') as AnyObject));
    expect(await publish(one('1.0.0.1'))).toMatchObject({ written: 0, conflicts: [name] });
    await time.settle(admin.delete(dnsEndpointType, { namespace: 'prod', name: 'by-hand' }));
    const empty = { ...theirs(name), spec: { endpoints: [] } };
    await time.settle(admin.create(dnsEndpointType, empty as AnyObject));
    expect(await publish(one('1.0.0.1'))).toMatchObject({ written: 0, failed: 1 });
    expect(await publish([])).toMatchObject({ written: 0, failed: 0 });
    expect(await all()).toMatchObject([{ metadata: { name }, spec: { endpoints: [] } }]);
  });

  test('DNSEndpoint: no external-dns takes them up -> said after three minutes; one does -> not any more', async () => {
    const { time, admin, publish } = await start();
    await publish(one('1.0.0.1'));
    expect((await publish(one('1.0.0.1'))).remark).toBe('');
    await time.advance(200_000);
    expect((await publish(one('1.0.0.1'))).remark).toMatch(
      /1 of 1 DNSEndpoints have not been taken up .* --source=crd/,
    );
    const present = await time.settle(admin.get(dnsEndpointType, ref));
    const status = { observedGeneration: present.metadata.generation };
    await time.settle(admin.updateStatus(dnsEndpointType, { ...present, status } as AnyObject));
    expect((await publish(one('1.0.0.1'))).remark).toBe('');
  });

  test('DNSEndpoint: the broker has no such kind -> said', async () => {
    const { publish } = await start({ hasKind: false });
    await expect(publish(one('1.0.0.1'))).rejects.toThrow(/no kind DNSEndpoint .* install its definition/);
  });

  test('Federation: a provider without its settings -> refused, and says which', async () => {
    const { time, admin } = await start({ hasKind: false });
    const make = (type: 'RFC2136' | 'Webhook') =>
      time.settle(
        admin.create<Federation>(federationType, {
          apiVersion: 'portolan.dev/v1alpha1',
          kind: 'Federation',
          metadata: { name: 'other', namespace: 'prod' },
          spec: { public: { domain: 'example.org', provider: { type } } },
        }),
      );
    await expect(make('Webhook')).rejects.toThrow(/webhook is required for type Webhook/);
    await expect(make('RFC2136')).rejects.toThrow(/rfc2136 is required for type RFC2136/);
  });
});
