// A tenant that may write ServiceImports and EndpointSlices in its own namespace, and wants the address of another's service.

import { describe, expect, test } from 'vitest';
import { candidates } from '../../src/addresses/candidates.ts';
import { recordType } from '../../src/base/dns/codes.ts';
import { silentLog } from '../../src/base/log.ts';
import { formatAddress, parseRange } from '../../src/base/net/ip.ts';
import { Attachment } from '../../src/catalog/attach.ts';
import { Catalog } from '../../src/catalog/catalog.ts';
import { followDnsOptions } from '../../src/catalog/clusterset-options.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import { attachProxy } from '../../src/proxy/attach.ts';
import { ProxyState } from '../../src/proxy/state.ts';
import { emptyViewInput, viewOf } from '../../src/proxy/view.ts';
import { ClustersetSource } from '../../src/xds/sources/clusterset.ts';
import { ViewIndex } from '../../src/xds/view/view-index.ts';
import { SimClusterSet } from '../clusterset.ts';
import { find } from '../look.ts';
import { exportService } from '../manifests.ts';

const victim = 'shop/checkout';
const thief = 'attic/checkout';
const range = parseRange('243.0.0.0/12')!;
/** Known to everybody: the address is a hash of the name. */
const [address = ''] = candidates({
  owner: { kind: 'ServiceImport', namespace: 'shop', name: 'checkout' },
  ...{ range, preferred: [], isTaken: () => false },
});

const stolenImport = (labels: Record<string, string> = {}) =>
  ({
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { namespace: 'attic', name: 'checkout', labels },
    spec: { type: 'ClusterSetIP', ips: [address], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  }) as AnyObject;

const stolenSlice = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    ...{ namespace: 'attic', name: 'checkout-trap' },
    labels: {
      'multicluster.kubernetes.io/service-name': 'checkout',
      'multicluster.kubernetes.io/source-cluster': 'east',
    },
  },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  endpoints: [{ addresses: ['10.66.6.6'], conditions: { ready: true } }],
} as AnyObject;

async function scene() {
  const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop', 'attic'] });
  const home = set.home('east');
  const world = set.simulation.world('readers');
  const client = home.clientOf(world);
  const options = { client, world, log: silentLog };
  const state = new ProxyState(viewOf({ ...emptyViewInput, ranges: [range] }));
  attachProxy({ ...options, state, view: { ...emptyViewInput, ranges: [range] } });
  const catalog = new Catalog({ clock: world.clock, timers: world.timers, cluster: { id: 'east' } });
  new Attachment({ ...options, catalog });
  followDnsOptions({ ...options, home: client, catalog, onZone: () => {}, fixed: {} });
  const views = new ViewIndex();
  new ClustersetSource({ ...options, views });
  const backendsOf = (key: string) =>
    state.choiceOf(key).ports.flatMap(({ backends }) => backends.map((backend) => backend.address));
  const answersOf = (key: string) => {
    const [namespace, name] = key.split('/');
    const sets = catalog.table.get(`${name}.${namespace}.svc.clusterset.local`)?.sets ?? [];
    const records = sets.filter(({ type }) => type === recordType.A).flatMap((one) => one.records);
    return records.map(({ rdata }) => formatAddress(rdata));
  };
  const listeners = () =>
    Array.from(views.clustersetListeners.entries('listener'), ({ name }) => name).filter((name) =>
      name.endsWith(address),
    );
  const conditionsOf = async (key: string) => {
    const found = await find<ServiceImport>(home.admin, serviceImportType, key);
    const conditions = found?.status?.conditions ?? [];
    return conditions.map(({ type, status, reason, message }) => `${type}=${status}/${reason}: ${message}`);
  };
  return { set, home: home.admin, backendsOf, answersOf, listeners, conditionsOf, state };
}

describe('address thief', () => {
  test.each(['before the service is exported', 'after it'])(
    'address thief: an import that names the address of another, made %s -> proxy, DNS and xDS serve the holder alone',
    async (when) => {
      const { set, home, backendsOf, answersOf, listeners, conditionsOf } = await scene();
      const steal = async () => {
        await home.create(serviceImportType, stolenImport());
        await home.create(endpointSliceType, stolenSlice);
        await set.time.advance(4_000);
      };
      if (when !== 'after it') await steal();
      await exportService(home, victim, { endpoints: ['10.1.0.1'] });
      await set.time.advance(4_000);
      if (when === 'after it') await steal();
      expect((await find<ServiceImport>(home, serviceImportType, victim))?.spec.ips).toEqual([address]);
      expect([backendsOf(victim), backendsOf(thief)]).toEqual([['10.1.0.1'], []]);
      expect([answersOf(victim), answersOf(thief)]).toEqual([[address], []]);
      expect(listeners()).toEqual([`checkout.shop.svc.clusterset.local:80 ${address}`]);
      expect((await conditionsOf(victim)).at(-1)).toBe(
        `AddressConflict=True/NamedByOthers: ${address} belongs to this import, as its AddressClaim says; ServiceImport ${thief} names it too, and is not served there`,
      );
      expect(await conditionsOf(thief)).toEqual([
        `AddressConflict=True/HeldByAnother: ${address} belongs to ServiceImport ${victim}, as its AddressClaim says`,
      ]);
      await home.delete(serviceImportType, { namespace: 'attic', name: 'checkout' });
      await set.time.advance(4_000);
      expect((await conditionsOf(victim)).at(-1)).toBe(
        'AddressConflict=False/NoConflict: no other import names its addresses',
      );
    },
  );

  test("address thief: an address of the range that is nobody else's yet -> not served, and its import says why", async () => {
    const { set, home, backendsOf, answersOf, listeners, conditionsOf } = await scene();
    await home.create(serviceImportType, stolenImport());
    await home.create(endpointSliceType, stolenSlice);
    await set.time.advance(4_000);
    expect([backendsOf(thief), answersOf(thief), listeners()]).toEqual([[], [], []]);
    expect(await conditionsOf(thief)).toEqual([
      `AddressConflict=True/NotClaimed: ${address} is in a range of the clusterset, and no AddressClaim gives it to this import`,
    ]);
  });

  test('address thief: exports, changes and restarts without a thief -> no import ever has the condition', async () => {
    const { set, home, backendsOf, answersOf, conditionsOf } = await scene();
    await exportService(home, victim, { endpoints: ['10.1.0.1'] });
    for (let step = 0; step < 10; step += 1) {
      await set.time.advance(500);
      expect((await conditionsOf(victim)).filter((line) => line.startsWith('Address'))).toEqual([]);
    }
    set.killAgent('east');
    set.startAgent('east');
    await set.time.advance(10_000);
    expect([backendsOf(victim), answersOf(victim)]).toEqual([['10.1.0.1'], [address]]);
    expect((await conditionsOf(victim)).filter((line) => line.startsWith('Address'))).toEqual([]);
  });
});
