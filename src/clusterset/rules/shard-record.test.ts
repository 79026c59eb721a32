import { describe, expect, test } from 'vitest';
import { parseRange } from '../../base/net/ip.ts';
import type { Service, ServiceSpec } from '../../kube/objects/service.ts';
import { drainAnnotation, type ServiceExport } from '../kinds/service-export.ts';
import type { ServiceShardSpec } from '../kinds/service-shard.ts';
import { readTranslations } from './address-translation.ts';
import {
  planShard,
  publishedRecord,
  publishedServiceKey,
  readShard,
  recordProblem,
  type ShardPlanRequest,
} from './shard-record.ts';

const rules = { virtualRanges: [parseRange('243.0.0.0/12')!], allowedRanges: [] };
const exportedAt = '2026-01-01T00:00:00Z';

function plan(spec: ServiceSpec | undefined, more: Partial<ShardPlanRequest> & { status?: Service['status'] } = {}) {
  const metadata = { name: 'checkout', namespace: 'shop' };
  const serviceExport = { metadata: { ...metadata, creationTimestamp: exportedAt } } as ServiceExport;
  const service = { metadata, spec, status: more.status } as Service;
  return planShard({
    service,
    serviceExport,
    readyCount: 3,
    clusterSetIps: [],
    namespace: 'prod-m-east',
    rules,
    ...more,
  });
}

describe('plan shard', () => {
  test('plan shard: a plain service -> its record in the namespace of the member, and no field that says nothing', () => {
    const { kind, metadata, spec } = plan({ clusterIPs: ['10.96.0.1'], ports: [{ port: 80 }] });
    expect([kind, metadata]).toEqual(['ServiceShard', { name: 'checkout.shop', namespace: 'prod-m-east' }]);
    expect(JSON.parse(JSON.stringify(spec))).toEqual({
      exportedAt,
      type: 'ClusterSetIP',
      ports: [{ protocol: 'TCP', port: 80 }],
      sessionAffinity: 'None',
      ipFamilies: ['IPv4'],
      clusterIPs: ['10.96.0.1'],
      readyEndpoints: 3,
    });
  });

  test('plan shard: a service without a spec -> a record without ports and addresses', () => {
    expect(plan(undefined).spec).toMatchObject({ ports: [], clusterIPs: [], type: 'ClusterSetIP' });
  });

  test('plan shard: ports -> with their names, protocols and application protocols; an empty name is none', () => {
    const ports = [
      { name: 'web', port: 80, protocol: 'TCP' as const, appProtocol: 'http' },
      { name: '', port: 53, protocol: 'UDP' as const },
    ];
    expect(JSON.parse(JSON.stringify(plan({ ports }).spec.ports))).toEqual([
      { name: 'web', port: 80, protocol: 'TCP', appProtocol: 'http' },
      { port: 53, protocol: 'UDP' },
    ]);
  });

  test('plan shard: a headless service -> its type, and no cluster IPs', () => {
    const { spec } = plan({ clusterIP: 'None', clusterIPs: ['None'] });
    expect([spec.type, 'clusterIPs' in spec]).toEqual(['Headless', false]);
  });

  test('plan shard: the timeout of client affinity -> only beside ClientIP', () => {
    const sessionAffinityConfig = { clientIP: { timeoutSeconds: 60 } };
    expect(plan({ sessionAffinity: 'ClientIP', sessionAffinityConfig }).spec).toMatchObject({
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig,
    });
    expect('sessionAffinityConfig' in plan({ sessionAffinity: 'None', sessionAffinityConfig }).spec).toBe(false);
    expect('sessionAffinityConfig' in plan({ sessionAffinity: 'ClientIP' }).spec).toBe(false);
  });

  test('plan shard: what the export asks for -> metadata, readers, staleness, drain', () => {
    const serviceExport = {
      metadata: {
        annotations: { [drainAnnotation]: 'true', 'portolan.dev/export-to': 'west', 'portolan.dev/on-stale': 'Keep' },
      },
      spec: { exportedLabels: { team: 'a' }, exportedAnnotations: { note: 'b' } },
    } as unknown as ServiceExport;
    const { spec } = plan({}, { serviceExport });
    expect(spec).toMatchObject({
      exportedLabels: { team: 'a' },
      exportedAnnotations: { note: 'b' },
      exportTo: ['west'],
      onStale: 'Keep',
      draining: true,
      exportedAt: '',
    });
    expect(Object.keys(plan({}).spec)).not.toEqual(expect.arrayContaining(['exportedLabels']));
    expect('draining' in plan({}).spec).toBe(false);
  });

  test('plan shard: clusterset IPs and counts -> as they are held', () => {
    const { spec } = plan({}, { clusterSetIps: ['243.1.1.1'], endpointShards: 2 });
    expect([spec.clusterSetIPs, spec.endpointShards]).toEqual([['243.1.1.1'], 2]);
    expect('clusterSetIPs' in plan({}).spec).toBe(false);
  });
});

describe('plan shard: addresses', () => {
  const status = {
    loadBalancer: { ingress: [{ ip: '198.51.100.1' }, { hostname: 'lb.example' }, { ip: '127.0.0.1' }] },
  };

  test('plan shard: a load balancer -> its usable addresses and names; left from an earlier type -> nothing', () => {
    const balanced = plan({ type: 'LoadBalancer' }, { status }).spec;
    expect(balanced.loadBalancer).toEqual([{ ip: '198.51.100.1' }, { hostname: 'lb.example' }]);
    expect('loadBalancer' in plan({ type: 'ClusterIP' }, { status }).spec).toBe(false);
    expect('loadBalancer' in plan({ type: 'LoadBalancer' }).spec).toBe(false);
  });

  test('plan shard: cluster IPs -> translated; one that the new range has no room for is left out, and so is ours', () => {
    const { translations } = readTranslations([{ from: '10.96.0.0/16', to: '172.16.0.0/24' }]);
    const clusterIPs = ['10.96.0.7', '10.96.9.9', '243.0.0.9', '10.1.0.1'];
    const { spec } = plan({ clusterIPs }, { rules: { ...rules, translations } });
    expect(spec.clusterIPs).toEqual(['172.16.0.7', '10.1.0.1']);
  });
});

describe('read shard', () => {
  const read = (spec: Partial<ServiceShardSpec>, creationTimestamp?: string) =>
    readShard({ metadata: { name: 'x', creationTimestamp }, spec } as never, 'east');

  test('read shard: nothing in it, as another cluster may write it -> a shard that can be merged', () => {
    expect(read({ exportedAt })).toEqual({
      cluster: 'east',
      exportedAt,
      type: 'ClusterSetIP',
      ports: [],
      sessionAffinity: 'None',
      affinityTimeoutSeconds: undefined,
      internalTrafficPolicy: undefined,
      trafficDistribution: undefined,
      ipFamilies: [],
      labels: {},
      annotations: {},
    });
  });

  test('read shard: its age -> from when the broker stored it, whatever the member says', () => {
    expect(read({ exportedAt }, '2026-03-03T00:00:00Z').exportedAt).toBe('2026-03-03T00:00:00Z');
  });

  test('read shard: values that make no sense -> the defaults', () => {
    const shard = read({
      type: 'Odd' as never,
      sessionAffinity: 'Odd' as never,
      ipFamilies: ['IPv6', 'IPv9' as never],
      ports: [{ port: 80 } as never],
    });
    expect(shard).toMatchObject({ type: 'ClusterSetIP', sessionAffinity: 'None', ipFamilies: ['IPv6'] });
    expect(shard.ports).toEqual([{ name: '', protocol: 'TCP', port: 80, appProtocol: undefined }]);
    expect(read({ type: 'Headless', sessionAffinity: 'ClientIP' })).toMatchObject({
      type: 'Headless',
      sessionAffinity: 'ClientIP',
    });
  });

  test('read shard: more ports than a record may have -> a problem that says so', () => {
    const withPorts = (count: number) =>
      recordProblem({ spec: { ports: Array.from({ length: count }, () => ({ port: 1 })) } } as never);
    expect([withPorts(1000), withPorts(1001)]).toEqual([undefined, 'has 1001 ports, more than 1000']);
    expect(recordProblem({ spec: {} } as never)).toBeUndefined();
  });
});

test('published record: labels -> name its service; a slice without one of them is none of ours', () => {
  const slice = { name: 'a.shop.pods', addressType: 'IPv4' as const, endpoints: [], ports: [] };
  const service = { name: 'checkout', namespace: 'shop' };
  const record = publishedRecord(slice, { service, namespace: 'prod-m-east' });
  expect(record.metadata).toMatchObject({ name: 'a.shop.pods', namespace: 'prod-m-east' });
  expect(publishedServiceKey(record)).toBe('shop/checkout');
  for (const label of Object.keys(record.metadata.labels ?? {}).slice(0, 2)) {
    const { [label]: _label, ...labels } = record.metadata.labels ?? {};
    expect(publishedServiceKey({ ...record, metadata: { ...record.metadata, labels } })).toBeUndefined();
  }
});
