import { expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { measureAgentRole } from './role.ts';

test('agent: no member, or no member any more -> no end of a token, which an alert would take for one of 1970', async () => {
  const metrics = createMetrics();
  let membership: MembershipRecord | undefined;
  measureAgentRole(metrics, () => ({ state: { kind: 'no member' }, membership }));
  const ends = async () => /^portolan_agent_token_expiry_timestamp_seconds .*$/m.exec(await metrics.text())?.[0];
  expect(await ends()).toBeUndefined();
  membership = { tokenExpiresAt: '2026-01-01T00:00:00Z' } as MembershipRecord;
  expect(await ends()).toBe('portolan_agent_token_expiry_timestamp_seconds 1767225600');
  membership = undefined;
  expect(await ends()).toBeUndefined();
});

test('agent: its token -> its whole life by the token itself, and none while the cluster is no member', async () => {
  const metrics = createMetrics();
  let membership: MembershipRecord | undefined;
  measureAgentRole(metrics, () => ({ state: { kind: 'no member' }, membership }));
  const life = async () => /^portolan_agent_token_lifetime_seconds .*$/m.exec(await metrics.text())?.[0];
  expect(await life()).toBeUndefined();
  const token = `e30.${Buffer.from(JSON.stringify({ iat: 100, exp: 7300 })).toString('base64url')}.c2ln`;
  const times = { tokenIssuedAt: '2025-12-31T00:00:00Z', tokenExpiresAt: '2026-01-01T00:00:00Z' };
  membership = { token, ...times } as MembershipRecord;
  expect(await life()).toBe('portolan_agent_token_lifetime_seconds 7200');
  membership = { token: '', tokenIssuedAt: '', tokenExpiresAt: '' } as MembershipRecord;
  expect(await life()).toBeUndefined();
});
