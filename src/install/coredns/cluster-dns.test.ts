// What is written for the CoreDNS of a cluster, refused, and taken out again.

import { describe, expect, test } from 'vitest';
import type { ConfigMap } from '../../kube/objects/config-map.ts';
import { addonCorefile, type ClusterDns, kindOf, planChange, planRemoval, stubState } from './cluster-dns.ts';

const main = '.:53 {\n    errors\n    forward . /etc/resolv.conf\n    reload\n}\n';
const wanted = { addresses: ['10.96.0.20'], zones: ['clusterset.local', 'peers.local', 'federation'] };
const map = (name: string, data: Record<string, string>, more: object = {}): ConfigMap => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'kube-system', name, ...more }, data },
});
const withCorefile = (text: string, more: object = {}): ClusterDns => ({
  coredns: map('coredns', { Corefile: text, other: 'kept' }, more),
  custom: undefined,
});
const aks = withCorefile(`${main}import custom/*.server\n`);

describe('cluster dns', () => {
  test.each([
    ['kubeadm', withCorefile(main), 'coredns'],
    ['AKS', aks, 'aks'],
    ['k3s', withCorefile(`${main}import /etc/coredns/custom/*.server\n`), 'aks'],
    ['EKS', withCorefile(main, { labels: { 'eks.amazonaws.com/component': 'coredns' } }), 'eks'],
    ['no Corefile', { coredns: map('coredns', {}), custom: undefined }, 'coredns'],
  ] as const)('cluster dns: %s -> configured as %s', (_what, dns, kind) => {
    expect(kindOf(dns)).toBe(kind);
  });

  test('cluster dns: written, again, with another address, taken out -> only our block comes, changes and goes', () => {
    const dns = withCorefile(main);
    expect(stubState(dns, wanted)).toEqual({ kind: 'absent' });
    const first = planChange(dns, wanted, 'coredns')!;
    expect(first.object?.data).toMatchObject({ other: 'kept', Corefile: first.after });
    const written = { coredns: first.object, custom: undefined };
    expect(stubState(written, wanted)).toEqual({ kind: 'asks' });
    expect(planChange(written, wanted, 'coredns')).toBeUndefined();
    const moved = { ...wanted, addresses: ['10.96.0.30'] };
    expect(stubState(written, moved)).toEqual({ kind: 'elsewhere', forwards: ['10.96.0.20'] });
    expect(planChange(written, moved, 'coredns')?.after).toContain('forward . 10.96.0.30');
    expect(planRemoval(written).map(({ after }) => after)).toEqual([main]);
    expect(planRemoval(dns)).toEqual([]);
  });

  test('cluster dns: coredns-custom is absent -> made and deleted; with keys of others -> they stay', () => {
    const made = planChange(aks, wanted, 'aks')!;
    expect(made.present).toBeUndefined();
    expect(Object.keys(made.object?.data ?? {})).toEqual(['portolan.server']);
    expect(stubState({ ...aks, custom: made.object }, wanted)).toEqual({ kind: 'asks' });
    expect(planRemoval({ ...aks, custom: made.object })).toMatchObject([{ object: undefined }]);
    const custom = map('coredns-custom', { 'mine.server': 'mine.example:53 {\n}\n' });
    const added = planChange({ ...aks, custom }, wanted, 'aks')!;
    expect(added.object?.data).toMatchObject(custom.data!);
    const [removed] = planRemoval({ ...aks, custom: added.object });
    expect(removed?.object?.data).toEqual(custom.data);
  });

  test.each([
    ['the Corefile', withCorefile(`${main}clusterset.local:53 {\n    multicluster clusterset.local\n}\n`)],
    ['coredns-custom', { ...aks, custom: map('coredns-custom', { 'x.server': 'CLUSTERSET.local. {\n}\n' }) }],
  ])(
    'cluster dns: somebody else has a block for the zone in %s -> refused: CoreDNS would not start with two',
    (_what, dns) => {
      expect(() => planChange(dns, wanted, 'coredns')).toThrow('has a server block for clusterset.local already');
      expect(() => planChange(dns, wanted, 'aks')).toThrow('has a server block for clusterset.local already');
      expect(() => addonCorefile(dns, wanted)).toThrow('already');
      expect(stubState(dns, wanted)).toEqual({ kind: 'other' });
    },
  );

  test('cluster dns: its server listens on another port -> so does our block; a Corefile without braces -> refused', () => {
    expect(planChange(withCorefile(main.replace(':53', ':5353')), wanted, 'coredns')?.after).toContain(
      'clusterset.local:5353 ',
    );
    expect(() => planChange(withCorefile('.:53\nerrors\n'), wanted, 'coredns')).toThrow('no server block with braces');
  });

  test('cluster dns: EKS -> the Corefile that it has with our block, and without it', () => {
    const written = addonCorefile(withCorefile(main), wanted);
    expect(written.startsWith(main)).toBe(true);
    expect(addonCorefile(withCorefile(written), wanted)).toBe(written);
    expect(addonCorefile(withCorefile(written), undefined)).toBe(main);
  });
});
