import { expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import { type MeasuredAgent, measureAgent } from './agent-metrics.ts';

const condition = (type: string, status: string) => ({ type, status });
const withConditions = (...conditions: object[]) => ({ metadata: { name: 'x' }, status: { conditions } });
const ours = { name: 'x', labels: { 'app.kubernetes.io/managed-by': 'portolan' } };
const copy = (objects: readonly object[]) => ({ values: () => objects });

function measured(isRunning = true) {
  const metrics = createMetrics();
  const copies = {
    exports: copy([
      withConditions(condition('Valid', 'True'), condition('Ready', 'True'), condition('Conflict', 'True')),
      withConditions(condition('Valid', 'True'), condition('Ready', 'False')),
      withConditions(condition('Valid', 'False'), condition('Ready', 'False')),
      { metadata: { name: 'new' } },
    ]),
    imports: copy([
      { metadata: ours, status: { conditions: [condition('Ready', 'True')] } },
      { metadata: { name: 'of-another' }, status: { conditions: [condition('Ready', 'True')] } },
    ]),
    claims: copy([
      { spec: { address: '10.64.0.1' } },
      { spec: { address: '10.65.0.1' } },
      { spec: { address: '192.0.2.1' } },
    ]),
  };
  const addressRanges = { clusterSet: ['10.64.0.0/16', 'fd00::/112'], peers: ['10.65.0.0/24'], external: [] };
  measureAgent(metrics, {
    copies,
    members: { all: () => [{ id: 'east' }, { id: 'west' }] },
    verdict: (id: string) => (id === 'east' ? 'alive' : 'stale'),
    policy: () => ({ addressRanges }),
    isRunning: () => isRunning,
  } as unknown as MeasuredAgent);
  return metrics.text();
}

test('agent metrics: members, exports and imports by state, conflicts, pools', async () => {
  const lines = (await measured()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines).toEqual([
    'portolan_clusterset_member_alive{member="east"} 1',
    'portolan_clusterset_member_alive{member="west"} 0',
    'portolan_clusterset_exports{state="ready"} 1',
    'portolan_clusterset_exports{state="not_ready"} 1',
    'portolan_clusterset_exports{state="invalid"} 1',
    'portolan_clusterset_exports{state="pending"} 1',
    'portolan_clusterset_imports{state="ready"} 1',
    'portolan_clusterset_imports{state="not_ready"} 0',
    'portolan_clusterset_imports{state="pending"} 0',
    'portolan_clusterset_export_conflicts 1',
    'portolan_address_pool_addresses{pool="clusterset",family="IPv4"} 65534',
    'portolan_address_pool_addresses{pool="clusterset",family="IPv6"} 65534',
    'portolan_address_pool_addresses{pool="peers",family="IPv4"} 254',
    'portolan_address_pool_used_addresses{pool="clusterset",family="IPv4"} 1',
    'portolan_address_pool_used_addresses{pool="clusterset",family="IPv6"} 0',
    'portolan_address_pool_used_addresses{pool="peers",family="IPv4"} 1',
  ]);
});

test('agent metrics: an agent that does not lead any more -> shows none of them', async () => {
  const values = (await measured(false)).split('\n').filter((line) => line.includes('{'));
  expect(values).toEqual([]);
});
