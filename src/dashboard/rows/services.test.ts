import { expect, test } from 'vitest';
import { clusterStatus } from '../../clusterset/explain/cluster-status.ts';
import { explainService } from '../../clusterset/explain/explain-service.ts';
import type { MemberState, SetState } from '../../clusterset/explain/set-state.ts';
import type { StalenessPolicy } from '../../clusterset/kinds/cluster-set.ts';
import type { ServiceShard } from '../../clusterset/kinds/service-shard.ts';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import { setServiceRow } from './services.ts';

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
    return { id, cluster, record: undefined, lease: undefined, verdict, memory, shards } as MemberState;
  });
  return { set, policy: readSetPolicy(set), members, older: new Map() };
}

/** How the page and the command line count: they must agree. */
function shown(text: string, staleness?: StalenessPolicy): string {
  const state = stateOf(text, staleness);
  const { standing, says, exporters } = setServiceRow(state, key, []);
  const ready = exporters.map((one) => `${one.cluster}=${one.ready}`).join(' ');
  const told = state.members.map((one) => `${one.id}=${clusterStatus(one, state, 0).readyEndpoints}`).join(' ');
  expect(told).toBe(ready);
  if (standing !== 'stale') {
    const explained = explainService(state, key).standings;
    expect(explained.map((one) => `${one.cluster}=${one.readyEndpoints}`).join(' ')).toBe(ready);
  }
  return `${standing}, ${says}: ${ready}`;
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
