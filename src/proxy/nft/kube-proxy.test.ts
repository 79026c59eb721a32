import { expect, test } from 'vitest';
import { kubeProxyIn } from './kube-proxy.ts';

const listed = (...objects: readonly object[]) => JSON.stringify({ nftables: [{ metainfo: {} }, ...objects] });

test.each([
  [listed(), undefined],
  ['{}', undefined],
  [listed({ table: { family: 'inet', name: 'portolan' } }, { chain: { table: 'nat', name: 'DOCKER' } }), undefined],
  [listed({ table: { family: 'ip', name: 'kube-proxy' } }), 'table ip kube-proxy'],
  [
    listed({ table: { family: 'ip', name: 'nat' } }, { chain: { family: 'ip', table: 'nat', name: 'KUBE-SERVICES' } }),
    'chain KUBE-SERVICES in table ip nat',
  ],
])('kube-proxy: its rules in any of its modes with chains -> named (%#)', (json, found) => {
  expect(kubeProxyIn(json)).toBe(found);
});
