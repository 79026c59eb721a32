// Whether connections between two meshes lead anywhere.

import { expect, test } from 'vitest';
import type { DataPlane } from '../../kube/objects/reports/data-plane.ts';
import { ingressProblem, ingressServed, servicesReachable, type TriedIngress } from './reach.ts';

const programmed: DataPlane = { kind: 'programmed', proxies: 1, since: '', isRedirected: true };
const none: DataPlane = { kind: 'none', hasServer: true };
const good = { at: '192.0.2.1:15443', why: '' };
const bad = { at: '192.0.2.2:15443', why: 'connection refused' };

test.each<[string, DataPlane, readonly TriedIngress[], string | undefined]>([
  ['an Envoy here, its ingress answers', programmed, [good], 'True Reachable'],
  ['an Envoy here, its ingress was not tried', programmed, [], 'True Reachable'],
  ['an Envoy here, its ingress is dead', programmed, [bad], 'False IngressAway'],
  ['an Envoy here, one of two ingresses is dead', programmed, [good, bad], 'True SomeIngressAway'],
  ['no Envoy here', none, [good], 'False NotProgrammed'],
  ['no Envoy here, and its ingress is dead', none, [bad], 'False IngressAway'],
  ['the xDS server is silent', { kind: 'away' }, [good], 'Unknown XdsSilent'],
  ['nothing sends connections to the Envoy', { ...programmed, isRedirected: false }, [good], 'Unknown NotRedirected'],
  ['the Leases are unread', { kind: 'unknown' }, [bad], undefined],
])('reach: taking, %s -> %s', (_what, sidecars, ingress, expected) => {
  const found = servicesReachable({ services: 3, sidecars, ingress });
  expect(found && `${found.status} ${found.reason}`).toBe(expected);
  if (expected?.includes('Away')) expect(found?.message).toContain('192.0.2.2:15443 (connection refused)');
});

test('reach: taking nothing -> nothing is missing', () => {
  expect(servicesReachable({ services: 0, sidecars: none, ingress: [] })).toMatchObject({ status: 'True' });
});

test.each<[string, DataPlane, readonly TriedIngress[], RegExp | undefined]>([
  ['an Envoy has it, whatever we reach ourselves', programmed, [bad], /^$/],
  ['an ingress of another make answers', none, [bad, good], /^$/],
  ['no Envoy, and nothing answers', none, [bad], /^no Envoy of role ingress .* does not answer: 192\.0\.2\.2:15443/],
  ['no Envoy, and nothing was tried', none, [], /^no Envoy of role ingress has a configuration; start one/],
  ['the xDS server is silent, and nothing answers', { kind: 'away' }, [bad], /^no portolan xds has reported lately/],
  ['the xDS server is silent, and nothing was tried', { kind: 'away' }, [], undefined],
  ['the Leases are unread', { kind: 'unknown' }, [], undefined],
])('reach: giving, %s -> as it is', (_what, envoys, ingress, expected) => {
  const problem = ingressProblem({ envoys, ingress });
  if (expected === undefined) expect(problem).toBeUndefined();
  else expect(problem).toMatch(expected);
  expect(ingressServed(2, { envoys, ingress })?.status).toBe(
    problem === undefined ? undefined : problem === '' ? 'True' : 'False',
  );
  expect(ingressServed(0, { envoys, ingress })?.reason).toBe('NothingShared');
});

test('reach: many dead ingresses -> four are named, and how many more', () => {
  const ingress = Array.from({ length: 9 }, (_, i) => ({ at: `192.0.2.${i}:1`, why: 'x' }));
  expect(servicesReachable({ services: 1, sidecars: programmed, ingress })?.message).toMatch(
    /192\.0\.2\.3:1 \(x\), and 5 more$/,
  );
});
