// The Envoys of a cluster from the Leases of its parts.

import { expect, test } from 'vitest';
import type { Lease } from '../lease.ts';
import { partLabel } from '../part-lease.ts';
import { dataPlaneOf, notCarriedBy, programmedAnnotation, redirectsAnnotation } from './data-plane.ts';

const nowMs = Date.UTC(2026, 0, 1, 12);
const since = '2026-01-01T11:00:00Z';

function lease(part: string, annotations: Record<string, string> = {}, ageMs = 5000): Lease {
  const renewTime = new Date(nowMs - ageMs).toISOString();
  return {
    metadata: { name: part, labels: { [partLabel]: part }, annotations },
    spec: { holderIdentity: part, leaseDurationSeconds: 30, renewTime },
  } as unknown as Lease;
}

const xds = (report: unknown, ageMs?: number) =>
  lease('xds', { [programmedAnnotation]: JSON.stringify(report) }, ageMs);
const redirecting = lease('proxy', { [redirectsAnnotation]: 'envoy' });
const redirectingPeers = lease('proxy', { [redirectsAnnotation]: 'peers' });

test.each<[string, readonly Lease[], object]>([
  ['nothing runs', [], { kind: 'none', hasServer: false }],
  ['a node proxy alone', [redirecting], { kind: 'none', hasServer: false }],
  ['a server without proxies', [xds({})], { kind: 'none', hasServer: true }],
  ['a server of an older release', [lease('xds')], { kind: 'none', hasServer: true }],
  ['only an ingress', [xds({ ingress: { proxies: 1, since } })], { kind: 'none', hasServer: true }],
  ['a server that fell silent', [xds({ sidecar: { proxies: 1, since } }, 31_000)], { kind: 'away' }],
  [
    'a sidecar that nothing is redirected to',
    [xds({ sidecar: { proxies: 2, since } }), lease('proxy')],
    { kind: 'programmed', proxies: 2, since, isRedirected: false },
  ],
  [
    'a silent proxy that redirected',
    [xds({ sidecar: { proxies: 1, since } }), lease('proxy', { [redirectsAnnotation]: 'envoy' }, 31_000)],
    { kind: 'programmed', isRedirected: false },
  ],
  [
    'sidecars of two servers and a proxy',
    [
      xds({ sidecar: { proxies: 2, since } }),
      xds({ sidecar: { proxies: 1, since: '2026-01-01T10:00:00Z' } }),
      redirecting,
    ],
    { kind: 'programmed', proxies: 3, since: '2026-01-01T10:00:00Z', isRedirected: true },
  ],
  [
    'a sidecar on the addresses themselves',
    [xds({ sidecar: { proxies: 1, since, isBound: true } })],
    { kind: 'programmed', isRedirected: true },
  ],
  ...([
    '[',
    '7',
    'null',
    '{"sidecar":null}',
    '{"sidecar":{"proxies":"many"}}',
    '{"sidecar":{"proxies":0,"since":""}}',
  ].map((text) => [`nonsense ${text}`, [lease('xds', { [programmedAnnotation]: text })], { kind: 'none' }]) as [
    string,
    readonly Lease[],
    object,
  ][]),
])('data plane: %s -> as it is', (_what, leases, expected) => {
  expect(dataPlaneOf(leases, 'sidecar', nowMs)).toMatchObject(expected);
});

test('data plane: an ingress -> counts by itself, nothing is redirected to it', () => {
  const plane = dataPlaneOf([xds({ ingress: { proxies: 1, since } })], 'ingress', nowMs);
  expect(plane).toEqual({ kind: 'programmed', proxies: 1, since, isRedirected: true });
  expect(notCarriedBy(plane)).toBeUndefined();
});

test('a proxy that redirects connections to peers alone -> counts for peers, and not for external services', () => {
  const leases = [xds({ sidecar: { proxies: 1, since } }), redirectingPeers];
  expect(dataPlaneOf(leases, 'sidecar', nowMs, 'peers')).toMatchObject({ isRedirected: true });
  expect(dataPlaneOf(leases, 'sidecar', nowMs)).toMatchObject({ isRedirected: false });
});
