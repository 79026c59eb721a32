import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createAuthority } from '../../external/testing/pem.ts';
import { admitNode, identityIn, identityUri, judgeProxy, parseNodeId, parseWorkload } from './proxy-identity.ts';

const authority = createAuthority();
const startMs = Date.UTC(2026, 0, 1);
const endMs = Date.UTC(2026, 5, 1);
const uri = identityUri({ role: 'sidecar', cluster: 'east', name: 'web' });

function judge(uris: readonly string[], nowMs: number): string {
  const { certificate } = authority.issue({ kind: 'identity', uris: [...uris] }, endMs);
  const options = { authority: authority.certificate, cluster: 'east', nowMs };
  const verdict = judgeProxy([new X509Certificate(certificate)], options);
  return verdict.kind === 'refused' ? verdict.reason : 'trusted';
}

test('proxy identity: before and after the life of its certificate -> refused', () => {
  expect(judge([uri], startMs)).toBe('trusted');
  expect(judge([uri], endMs)).toBe('trusted');
  for (const nowMs of [startMs - 1000, endMs + 1000])
    expect(judge([uri], nowMs)).toContain('the certificate is valid from');
});

test.each([
  ['another path', ['spiffe://portolan/cluster/east/peer/web']],
  ['another trust domain', ['spiffe://other/cluster/east/xds/sidecar/web']],
  ['an unknown role', ['spiffe://portolan/cluster/east/xds/admin/web']],
  ['a workload beside an ingress', ['spiffe://portolan/cluster/east/xds/ingress/web/ns/shop/sa/web']],
  ['a workload without its account', ['spiffe://portolan/cluster/east/xds/sidecar/web/ns/shop']],
  ['two identities', [uri, identityUri({ role: 'ingress', cluster: 'east', name: 'web' })]],
])('proxy identity: a certificate with %s -> refused', (_what, uris) => {
  expect(judge(uris, startMs)).toBe('the certificate names no proxy');
});

test('proxy identity: of a sidecar beside a workload -> that workload, and the node id stays', () => {
  const workload = parseWorkload('shop/checkout.v2')!;
  const identity = { role: 'sidecar', cluster: 'east', name: 'shop.web-0', workload } as const;
  const { certificate } = authority.issue({ kind: 'identity', uris: [identityUri(identity)] }, endMs);
  const caller = { identity: identityIn(new X509Certificate(certificate))! };
  expect(caller.identity).toEqual(identity);
  expect(admitNode('sidecar~east~shop.web-0', caller, 'east')).toEqual({ identity });
  expect(admitNode('sidecar~east~shop.web-1', caller, 'east')).toHaveProperty('reason');
});

test.each(['', 'shop', 'shop/', '/web', 'shop/web/x', 'Shop/web', 'shop.x/web', 'shop/-web', 'shop/web\n'])(
  'workload %j -> none',
  (text) => {
    expect(parseWorkload(text)).toBeUndefined();
  },
);

test.each([
  '',
  'router',
  'sidecar~east',
  'sidecar~east~',
  'sidecar~EAST~web',
  'admin~east~web',
  'sidecar~east~a~b',
  'sidecar~east~a\n',
])('proxy identity: node id %j -> unknown', (id) => {
  expect(parseNodeId(id)).toBeUndefined();
});
