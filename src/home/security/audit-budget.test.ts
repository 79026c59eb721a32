import { describe, expect, test } from 'vitest';
import { VirtualTime } from '../../../sim/virtual-time.ts';
import { type AuditEvent, auditEvent } from './audit.ts';
import { createAuditBudget, repeatedAnnotation } from './audit-budget.ts';

interface Asked {
  readonly user?: string;
  readonly status: number;
  readonly path?: string;
  readonly address?: string;
  readonly method?: string;
}

function eventOf({ user, status, path = '/api/v1/secrets', address = '192.0.2.1', method = 'GET' }: Asked): AuditEvent {
  return auditEvent({
    auditId: 'a',
    stage: 'ResponseComplete',
    method,
    path,
    userAgent: 'curl',
    sourceAddress: address,
    status,
    trail: user === undefined ? {} : { user: { name: user, groups: [] } },
    receivedWallMs: 0,
    nowWallMs: 0,
  });
}

function open() {
  const identified: AuditEvent[] = [];
  const anonymous: AuditEvent[] = [];
  const time = new VirtualTime();
  const budget = createAuditBudget({
    timers: { after: (delayMs, run) => time.schedule(delayMs, run) },
    identified: { record: (event) => identified.push(event) },
    anonymous: { record: (event) => anonymous.push(event) },
  });
  return { budget, identified, anonymous, time };
}

const repeated = (events: readonly AuditEvent[]) => events.map((event) => event.annotations?.[repeatedAnnotation]);

describe('audit budget', () => {
  test('audit budget: 12,000 anonymous requests are denied -> two lines in the log of their own, none in the other', () => {
    const { budget, identified, anonymous } = open();
    budget.record(eventOf({ user: 'ann', status: 200 }));
    for (let count = 0; count < 12_000; count++)
      budget.record(eventOf({ user: 'system:anonymous', status: 403, path: `/api/v1/namespaces/n${count}/secrets` }));
    budget.close();
    expect(repeated(anonymous)).toEqual([undefined, '11999']);
    expect(identified.map(({ user }) => user?.username)).toEqual(['ann']);
  });

  test('audit budget: wrong credentials, allowed requests without a user -> in the log of their own', () => {
    const { budget, identified, anonymous } = open();
    for (const status of [401, 200]) budget.record(eventOf({ status }));
    expect([identified.length, anonymous.length]).toEqual([0, 2]);
  });

  test('audit budget: a user is denied the same again and again -> told at once, then how often, each minute', async () => {
    const { budget, identified, time } = open();
    for (let minute = 0; minute < 2; minute++) {
      for (let count = 0; count < 5; count++) budget.record(eventOf({ user: 'bob', status: 403 }));
      await time.advance(60_000);
    }
    expect(repeated(identified)).toEqual([undefined, '4', undefined, '4']);
  });

  test('audit budget: a user is denied a thousand different things -> twenty told apart, the others counted', () => {
    const { budget, identified } = open();
    for (let count = 0; count < 1000; count++)
      budget.record(eventOf({ user: 'bob', status: 403, path: `/api/v1/kind${count}` }));
    budget.close();
    expect(identified).toHaveLength(22);
    expect(repeated(identified).at(-1)).toBe('979');
  });

  test('audit budget: what is allowed, also in great number -> a line each', () => {
    const { budget, identified } = open();
    for (let count = 0; count < 100; count++) budget.record(eventOf({ user: 'ann', status: 200 }));
    expect(identified).toHaveLength(100);
  });

  test('audit budget: denied from 10,000 addresses -> so many are told apart and no more', () => {
    const { budget, anonymous } = open();
    for (let count = 0; count < 10_000; count++) budget.record(eventOf({ status: 401, address: `fd00::${count}` }));
    expect(anonymous.length).toBeLessThanOrEqual(1001);
    budget.close();
    expect(repeated(anonymous).at(-1)).toBe('8999');
  });
});
