import { describe, expect, test } from 'vitest';
import { pathOf } from '../support/counterparts.ts';
import { runChaos } from './api.ts';
import { EtcdServers } from './api-etcd.ts';
import { isLinearizable, type Operation } from './linearizability.ts';

// Both mostly wait for processes to start and for leases to end: they run at the same time.
describe('api', () => {
  test.concurrent('killed with -9 under 64 writers -> nothing acknowledged is lost, no watch has a gap, the history is linearizable', async () => {
    const result = await runChaos({ kills: 6, writers: 64, lifeMsMax: 1200, say: () => {} });
    expect(result.problems).toEqual([]);
    expect(result.acknowledged).toBeGreaterThan(100);
    expect(result.compactions).toBeGreaterThan(0);
    expect(result.resumes).toBeGreaterThan(0);
    const withStale = [...result.history.operations.values()].map(withStaleRead);
    expect(withStale.some((operations) => !isLinearizable(operations))).toBe(true);
  }, 180_000);

  const lacksEtcd = pathOf('etcd') === undefined;
  const onEtcd = `on etcd${lacksEtcd ? ' (needs etcd)' : ''}`;
  test.skipIf(lacksEtcd).concurrent(
    `${onEtcd}: two processes on three members, one is cut off, etcd's leader killed, one killed, a member full -> nothing acknowledged is lost, no watch has a gap, the history is linearizable`,
    async () => {
      const options = { kills: 4, writers: 64, watchers: 20, lifeMsMax: 500, say: () => {} };
      const result = await runChaos(options, (data) => new EtcdServers(data));
      expect(result.problems).toEqual([]);
      expect(result.acknowledged).toBeGreaterThan(100);
      expect(result.resumes).toBeGreaterThan(0);
    },
    180_000,
  );
});

/** The same history, but for one read that shows what had been overwritten before it was asked. */
function withStaleRead(operations: readonly Operation[]): Operation[] {
  const first = operations.find(({ action, returnedAt }) => action.kind === 'write' && Number.isFinite(returnedAt));
  const last = Math.max(
    ...operations.filter(({ returnedAt }) => Number.isFinite(returnedAt)).map(({ returnedAt }) => returnedAt),
  );
  if (first?.action.kind !== 'write') return [...operations];
  return [
    ...operations,
    { calledAt: last + 1, returnedAt: last + 2, action: { kind: 'read', saw: `${first.action.wrote}` } },
  ];
}
