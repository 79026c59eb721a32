import { expect, test } from 'vitest';
import type { ProxyIdentity, ProxyRole } from '../identity/proxy-identity.ts';
import { testCluster, testEndpoints } from '../testing/resources.ts';
import { ViewIndex } from './view-index.ts';

const east = { cluster: 'east', region: 'r', zone: 'a' };

const proxyOf = (role: ProxyRole, name = 'web'): ProxyIdentity => ({ role, cluster: 'east', name });

function filled(): ViewIndex {
  const views = new ViewIndex();
  views.onPlace((place, set) => set.replace('e', [testEndpoints('checkout', `10.0.0.${place.zone === 'a' ? 1 : 2}`)]));
  views.clusterset.replace('c', [testCluster('checkout')]);
  views.clustersetListeners.replace('l', [testCluster('virtual')]);
  views.peers.replace('p', [testCluster('peer')]);
  views.external.replace('x', [testCluster('outside')]);
  views.ingress.replace('i', [testCluster('backend')]);
  views.gateway.replace('g', [testCluster('exported')]);
  views.sidecar.replace('s', [testCluster('nowhere')]);
  return views;
}

function seen(role: ProxyRole, isClustersetProxied = false): { all: string[]; byName: string[] } {
  const { view } = filled().open({ proxy: proxyOf(role), place: east, isClustersetProxied });
  const names = ['checkout', 'virtual', 'peer', 'outside', 'backend', 'exported', 'nowhere'];
  const all = [...view.wildcard('cluster')].map(({ name }) => name).sort();
  return { all, byName: names.filter((name) => view.get('cluster', name) !== undefined && !all.includes(name)) };
}

test('view: a sidecar -> outside, peers and its own listener; clusterset services by name; nothing of the ingress', () => {
  expect(seen('sidecar')).toEqual({ all: ['nowhere', 'outside', 'peer'], byName: ['checkout'] });
});

test('view: a sidecar that takes clusterset addresses -> those too, unasked', () => {
  expect(seen('sidecar', true)).toEqual({ all: ['checkout', 'nowhere', 'outside', 'peer', 'virtual'], byName: [] });
});

test('view: an ingress, a gateway -> its own alone; a gRPC client -> clusterset services, by name alone', () => {
  expect(seen('ingress')).toEqual({ all: ['backend'], byName: [] });
  expect(seen('gateway')).toEqual({ all: ['exported'], byName: [] });
  expect(seen('grpc')).toEqual({ all: [], byName: ['checkout'] });
});

test('view: proxies at two places -> endpoints of their own; at one place -> shared', () => {
  const views = filled();
  const open = (zone: string) =>
    views.open({ proxy: proxyOf('grpc'), place: { ...east, zone }, isClustersetProxied: false }).view;
  const version = (zone: string) => open(zone).get('endpoints', 'checkout')!.version;
  expect(version('a')).not.toBe(version('b'));
  expect(version('a')).toBe(version('a'));
  expect([...views.places()]).toHaveLength(2);
});

test('view: places whose proxies left -> a few are kept, the others forgotten', () => {
  const views = filled();
  for (let zone = 0; zone < 20; zone += 1)
    views.open({ proxy: proxyOf('grpc'), place: { ...east, zone: `z${zone}` }, isClustersetProxied: false }).release();
  expect([...views.places()]).toHaveLength(4);
});

test('view: a resource for those who name it -> in no wildcard, not even when it changes', () => {
  const views = filled();
  views.clusterset.replace('n', [{ ...testCluster('named'), isByNameOnly: true }]);
  const { view } = views.open({ proxy: proxyOf('sidecar'), place: east, isClustersetProxied: true });
  expect(view.get('cluster', 'named')).toBeDefined();
  expect([...view.wildcard('cluster')].map(({ name }) => name)).not.toContain('named');
  expect([view.isInWildcard('cluster', 'named'), view.isInWildcard('cluster', 'peer')]).toEqual([false, true]);
});

test('view: resources of one proxy alone -> seen by it, by no other sidecar, by no other role; gone with its last stream', () => {
  const views = filled();
  views.onProxy(({ name }, set) => set.replace('identity', [testCluster(`own-${name}`)]));
  const open = (role: ProxyRole, name: string) =>
    views.open({ proxy: proxyOf(role, name), place: east, isClustersetProxied: true });
  const [one, again, other] = [open('sidecar', 'one'), open('sidecar', 'one'), open('sidecar', 'other')];
  const sees = ({ view }: typeof one) => ['own-one', 'own-other'].filter((name) => view.get('cluster', name));
  expect([one, again, other].map(sees)).toEqual([['own-one'], ['own-one'], ['own-other']]);
  for (const role of ['ingress', 'grpc'] as const) expect(sees(open(role, 'one'))).toEqual([]);
  one.release();
  expect([...views.proxies()].map(({ proxy }) => proxy.name)).toEqual(['one', 'other']);
  again.release();
  expect([...views.proxies()].map(({ proxy }) => proxy.name)).toEqual(['other']);
});
