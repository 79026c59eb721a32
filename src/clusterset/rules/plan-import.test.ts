import { describe, expect, test } from 'vitest';
import { derivedFor, derivedServiceName, planDerivedService, withTraffic } from './derived-service.ts';
import type { Merge } from './merge/merged.ts';
import { isOurImport, planImport } from './plan-import.ts';

const service = { name: 'checkout', namespace: 'shop' };
const merge = {
  type: 'ClusterSetIP',
  ports: [
    { name: 'http', protocol: 'TCP', port: 80, appProtocol: 'h2c', isExposed: true },
    { name: '', protocol: 'UDP', port: 53, isExposed: true },
    { name: 'admin', protocol: 'TCP', port: 9000, isExposed: false },
  ],
  sessionAffinity: 'ClientIP',
  affinityTimeoutSeconds: 60,
  internalTrafficPolicy: 'Local',
  trafficDistribution: 'PreferClose',
  ipFamilies: ['IPv4', 'IPv6'],
  labels: { team: 'a', 'app.kubernetes.io/managed-by': 'somebody' },
  annotations: { note: 'exported', ours: 'exported' },
} as unknown as Merge;
const plain = (value: unknown) => JSON.parse(JSON.stringify(value));
const sessionAffinityConfig = { clientIP: { timeoutSeconds: 60 } };

describe('plan import', () => {
  test('plan import: a merged service -> its import, without the ports that not all clusters have', () => {
    const planned = planImport({ service, merge, ips: ['243.0.0.1'], annotations: { ours: 'mine' } });
    expect(planned.metadata).toEqual({
      ...service,
      labels: { team: 'a', 'app.kubernetes.io/managed-by': 'portolan' },
      annotations: { note: 'exported', ours: 'mine' },
    });
    expect(plain(planned.spec)).toEqual({
      type: 'ClusterSetIP',
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, appProtocol: 'h2c' },
        { protocol: 'UDP', port: 53 },
      ],
      ips: ['243.0.0.1'],
      ipFamilies: ['IPv4', 'IPv6'],
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig,
      internalTrafficPolicy: 'Local',
      trafficDistribution: 'PreferClose',
    });
    expect([isOurImport(planned), isOurImport({ ...planned, metadata: { name: 'x' } })]).toEqual([true, false]);
  });

  test('plan import: no addresses and no timeout -> neither field', () => {
    const { spec } = planImport({ service, merge: { ...merge, affinityTimeoutSeconds: undefined }, ips: [] });
    expect(['ips' in spec, 'sessionAffinityConfig' in spec]).toEqual([false, false]);
  });
});

describe('plan derived service', () => {
  test('plan derived service: of an import -> without a selector, the merged ports and the addresses to ask for', () => {
    const planned = planDerivedService({ service, merge, ips: ['10.96.0.9', 'fd00::9'] });
    expect(planned.metadata).toMatchObject({ name: derivedServiceName(service), namespace: 'shop' });
    expect(derivedFor(planned)).toBe('shop/checkout');
    expect(derivedFor({ ...planned, metadata: { name: 'x', namespace: 'shop' } })).toBeUndefined();
    expect(plain(planned.spec)).toEqual({
      type: 'ClusterIP',
      clusterIP: '10.96.0.9',
      clusterIPs: ['10.96.0.9', 'fd00::9'],
      ipFamilies: ['IPv4', 'IPv6'],
      ipFamilyPolicy: 'PreferDualStack',
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, targetPort: 80, appProtocol: 'h2c' },
        { protocol: 'UDP', port: 53, targetPort: 53 },
      ],
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig,
      internalTrafficPolicy: 'Local',
      trafficDistribution: 'PreferClose',
    });
  });

  test('plan derived service: one family, none, no addresses, no policy -> only what is known', () => {
    const spec = (more: Partial<Merge>) => planDerivedService({ service, merge: { ...merge, ...more }, ips: [] }).spec;
    expect(spec({ ipFamilies: ['IPv6'] })).toMatchObject({ ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' });
    const none = spec({ ipFamilies: [], affinityTimeoutSeconds: undefined, internalTrafficPolicy: undefined }) ?? {};
    for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy', 'sessionAffinityConfig'])
      expect(field in none, field).toBe(false);
    expect(none.internalTrafficPolicy).toBe('Cluster');
  });

  test('plan derived service: one that is there -> the new traffic settings; addresses and labels of others stay', () => {
    const before = planDerivedService({ service, merge, ips: ['10.96.0.9'] });
    const labelled = { ...before, metadata: { ...before.metadata, labels: { other: 'label' } } };
    const calm = { ...merge, affinityTimeoutSeconds: undefined, trafficDistribution: undefined, ports: [] };
    const after = withTraffic(labelled, { service, merge: calm, ips: [] });
    expect(after.metadata.labels).toMatchObject({ other: 'label', 'portolan.dev/derived-for': 'checkout' });
    expect(plain(after.spec)).toMatchObject({ clusterIP: '10.96.0.9', ports: [], ipFamilyPolicy: 'PreferDualStack' });
    expect(after.spec?.trafficDistribution).toBeUndefined();
    expect('sessionAffinityConfig' in (after.spec ?? {})).toBe(false);
    expect(withTraffic({ ...labelled, spec: undefined }, { service, merge: calm, ips: [] }).spec?.ports).toEqual([]);
  });
});
