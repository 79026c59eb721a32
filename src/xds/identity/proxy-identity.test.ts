import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createAuthority } from '../../external/testing/pem.ts';
import { identityUri, judgeProxy, parseNodeId } from './proxy-identity.ts';

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
  ['two identities', [uri, identityUri({ role: 'ingress', cluster: 'east', name: 'web' })]],
])('proxy identity: a certificate with %s -> refused', (_what, uris) => {
  expect(judge(uris, startMs)).toBe('the certificate names no proxy');
});

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
