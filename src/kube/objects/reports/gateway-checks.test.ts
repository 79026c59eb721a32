import { expect, test } from 'vitest';
import type { Lease } from '../lease.ts';
import { partLabel } from '../part-lease.ts';
import { formatGatewayChecks, gatewayChecks, gatewaysAnnotation } from './gateway-checks.ts';

const nowMs = Date.UTC(2026, 0, 1, 12);

function lease(text: string, { part = 'xds', ageMs = 1000 } = {}): Lease {
  const renewTime = new Date(nowMs - ageMs).toISOString();
  return {
    metadata: { name: part, labels: { [partLabel]: part }, annotations: { [gatewaysAnnotation]: text } },
    spec: { holderIdentity: part, leaseDurationSeconds: 30, renewTime },
  } as unknown as Lease;
}
const said = (checks: Record<string, string>) => lease(formatGatewayChecks(new Map(Object.entries(checks))));

test.each<[string, readonly Lease[], Record<string, string>]>([
  ['nobody', [], {}],
  ['one server', [said({ east: '', south: 'refused' })], { east: '', south: 'refused' }],
  ['one of two reaches it', [said({ east: 'refused' }), said({ east: '' })], { east: '' }],
  ['one of two reaches it, in the other order', [said({ east: '' }), said({ east: 'refused' })], { east: '' }],
  ['a silent server', [lease('{"east":"refused"}', { ageMs: 31_000 })], {}],
  ['another part', [lease('{"east":"refused"}', { part: 'proxy' })], {}],
  ...['[', '7', 'null', '[]', '{"east":7}', ''].map(
    (text) => [`nonsense ${text}`, [lease(text)], {}] as [string, Lease[], Record<string, string>],
  ),
])('gateway checks: %s -> as they were reported', (_what, leases, expected) => {
  expect(Object.fromEntries(gatewayChecks(leases, nowMs))).toEqual(expected);
});

test('gateway checks: many clusters and long reasons -> bounded in the Lease and when they are read', () => {
  const many = new Map(Array.from({ length: 200 }, (_, index) => [`c${index}`, 'x'.repeat(5000)]));
  expect(formatGatewayChecks(many).length).toBeLessThan(20_000);
  const text = JSON.stringify(Object.fromEntries(many));
  expect(gatewayChecks([lease(text)], nowMs).size).toBe(50);
  expect(gatewayChecks([lease(text)], nowMs).get('c0')).toHaveLength(300);
});
