import { expect, test } from 'vitest';
import { clusterStatus } from '../../clusterset/explain/cluster-status.ts';
import { explainService } from '../../clusterset/explain/explain-service.ts';
import type { MemberState, SetState } from '../../clusterset/explain/set-state.ts';
import type { StalenessPolicy } from '../../clusterset/kinds/cluster-set.ts';
import type { ServiceShard } from '../../clusterset/kinds/service-shard.ts';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import type { Landscape } from './landscape.ts';
import { serviceRows, setServiceRow } from './services.ts';

const key = 'shop/checkout';

/** `east* north west`: those that export the service with one ready endpoint each; `*` for an expired lease. */
function stateOf(text: string, staleness: StalenessPolicy = 'Withdraw'): SetState {
  const set = { apiVersion: '', kind: '', metadata: { name: 'prod' }, spec: { staleness } };
  const members = text.split(' ').map((word): MemberState => {
    const id = word.replace('*', '');
    const verdict = word.endsWith('*') ? 'stale' : 'alive';
    const shard: ServiceShard = {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'ServiceShard',
      metadata: { name: 'checkout.shop', namespace: `prod-m-${id}`, creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: {
        type: 'ClusterSetIP',
        ports: [{ name: 'http', protocol: 'TCP', port: 80 }],
        readyEndpoints: 1,
      } as ServiceShard['spec'],
    };
    const cluster = { apiVersion: '', kind: '', metadata: { name: id }, spec: { namespace: `prod-m-${id}` } };
    const memory = verdict === 'stale' ? { verdict, since: '2026-01-01T00:00:00Z', returns: 0 } : undefined;
    const shards = new Map([[key, shard]]);
    return { id, cluster, record: undefined, lease: undefined, leaseReadMs: 0, verdict, memory, shards } as MemberState;
  });
  return { set, policy: readSetPolicy(set), members, older: new Map() };
}

/** How the page and the command line count: they must agree. */
function shown(text: string, staleness?: StalenessPolicy): string {
  const state = stateOf(text, staleness);
  const { health, says, exporters } = setServiceRow(state, key, []);
  const ready = exporters.map((one) => `${one.cluster}=${one.ready}`).join(' ');
  const told = state.members.map((one) => `${one.id}=${clusterStatus(one, state).readyEndpoints}`).join(' ');
  expect(told).toBe(ready);
  if (health !== 'stale') {
    const explained = explainService(state, key).standings;
    expect(explained.map((one) => `${one.cluster}=${one.readyEndpoints}`).join(' ')).toBe(ready);
  }
  return `${health}, ${says}: ${ready}`;
}

test.each<[string, StalenessPolicy, string]>([
  ['east north west', 'Withdraw', 'ok, served: east=1 north=1 west=1'],
  ['east* north west', 'Withdraw', 'ok, served, without east: east=0 north=1 west=1'],
  ['east* north west', 'NotReady', 'ok, served, without east: east=0 north=1 west=1'],
  ['east* north west', 'Keep', 'ok, served: east=1 north=1 west=1'],
  ['east*', 'Withdraw', 'stale, no sign of life of east: east=0'],
])('services: %s, %s -> %s, and status and explain count the same', (text, staleness, wanted) => {
  expect(shown(text, staleness)).toBe(wanted);
});

/** A home that imports the service from east, with this condition Ready. */
function home(clusterId: string, status: 'True' | 'False', isCurrent = true): HomeWatch {
  const imported = {
    metadata: { name: 'checkout', namespace: 'shop' },
    spec: { type: 'ClusterSetIP', ips: ['243.0.0.1'] },
    status: { clusters: [{ cluster: 'east' }], conditions: [{ type: 'Ready', status, reason: 'x', message: '' }] },
  };
  const slice = { metadata: { labels: { 'multicluster.kubernetes.io/source-cluster': 'east' } }, endpoints: [{}] };
  return {
    clusterId,
    isCurrent: () => isCurrent,
    member: {
      exports: new Map(),
      imports: new Map([[key, imported]]),
      slices: { byIndex: () => [slice] },
    },
  } as unknown as HomeWatch;
}

function healthIn(...homes: HomeWatch[]) {
  const { health: word, says } = serviceRows({ homes, nowMs: 0 } as unknown as Landscape)(key)!;
  return `${word}: ${says}`;
}

test('services: nothing serves its address in some, in all, in no cluster -> limited, failed, ok, with the clusters', () => {
  const [west, south] = [home('west', 'True'), home('south', 'False')];
  expect(healthIn(west, south)).toBe('limited: its address is not served in south');
  expect(healthIn(south)).toBe('failed: its address is not served in south');
  expect(healthIn(west)).toBe('ok: served');
});

test('services: a home that does not answer -> its last condition is no fact of now', () => {
  expect(healthIn(home('west', 'True'), home('south', 'False', false))).toBe('ok: served');
});
