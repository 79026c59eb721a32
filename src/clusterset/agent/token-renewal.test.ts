import { describe, expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { type MembershipRecord, membershipSecret } from '../membership/membership.ts';
import { MembershipCopy } from './membership-copy.ts';
import { renewalDueMs, startTokenRenewal } from './token-renewal.ts';

const hourMs = 3_600_000;

function jwt(iat: number, exp: number): string {
  return `e30.${Buffer.from(JSON.stringify({ iat, exp })).toString('base64url')}.c2ln`;
}

describe('token renewal', () => {
  test('renewal: a third of its life has passed -> renewed once, kept at home; not before', async () => {
    const { time, asked, options, keptToken } = await start();
    startTokenRenewal(options);
    await time.advance(hourMs * 0.99);
    expect(asked).toHaveLength(0);
    await time.advance(hourMs * 0.02);
    expect(asked).toEqual([3 * hourMs]);
    expect(keptToken()).toBe(jwt(1, 10_801));
    await time.advance(hourMs * 0.9);
    expect(asked).toHaveLength(1);
  });

  test('renewal: the broker is away -> tried again until it answers, and said', async () => {
    const { time, asked, options, failNext } = await start();
    failNext(3);
    startTokenRenewal(options);
    await time.advance(hourMs + 45_000);
    expect(asked).toHaveLength(0);
    await time.advance(60_000);
    expect(asked).toHaveLength(1);
  });

  test('renewal: stopped -> asks no more', async () => {
    const { time, asked, options } = await start();
    startTokenRenewal(options).stop();
    await time.advance(hourMs * 5);
    expect(asked).toHaveLength(0);
  });

  test("renewal: the broker's clock is hours off -> due by our own clock and the token's own length", () => {
    const record = {
      tokenIssuedAt: '2026-01-01T00:00:00Z',
      tokenExpiresAt: '2026-01-01T09:00:00Z',
      token: jwt(7200, 7200 + 10_800),
    };
    expect(new Date(renewalDueMs(record as MembershipRecord)).toISOString()).toBe('2026-01-01T01:00:00.000Z');
  });
});

async function start() {
  const simulation = new Simulation({ seed: 1 });
  const world = simulation.world('agent');
  const virtual = await startHome(simulation);
  const home = createClient({ send: virtual.api.handle, close: () => {} }, { world, userAgent: 'test' });
  await home.create(secretType, membershipSecret(firstMembership(world.clock.wallMs())).object);
  const copy = new MembershipCopy({ home, world, log: silentLog, onChange: () => {} });
  copy.start();
  await simulation.time.advance(100);
  const asked: number[] = [];
  let failures = 0;
  const issue = async (_type: unknown, _ref: unknown, body: { spec: { expirationSeconds: number } }) => {
    failures -= 1;
    if (failures >= 0) throw new Error('away');
    asked.push(body.spec.expirationSeconds * 1000);
    const expirationTimestamp = formatTime(world.clock.wallMs() + 3 * hourMs);
    return { status: { token: jwt(asked.length, asked.length + 10_800), expirationTimestamp } };
  };
  const broker = { createSubresource: issue } as unknown as Client;
  return {
    time: simulation.time,
    asked,
    options: { world, broker, home, log: silentLog, membership: () => copy.current },
    keptToken: () => copy.current?.token,
    failNext: (count: number) => {
      failures = count;
    },
  };
}

function firstMembership(nowMs: number): MembershipRecord {
  return {
    clusterset: 'prod',
    clusterId: 'east',
    namespace: 'prod-m-east',
    accountNamespace: 'prod-members',
    accountName: 'east',
    server: 'https://broker',
    certificateAuthority: '',
    token: jwt(0, 10_800),
    tokenIssuedAt: formatTime(nowMs),
    tokenExpiresAt: formatTime(nowMs + 3 * hourMs),
  };
}
