import { expect, test } from 'vitest';
import type { Client } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/objects/api-error.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import type { Heartbeat } from '../kinds/heartbeat.ts';
import { OwnLease } from './own-lease.ts';

/** A broker with one lease, which can be put back, and whose answers can be lost. */
function start(left?: Lease) {
  let wallMs = 0;
  let homeAwaySinceMs: number | undefined;
  let there = left;
  let revision = 0;
  const broker = {
    losesAnswers: 0,
    refuses: 0,
    copy: () => structuredClone(there),
    putBack: (copy: Lease | undefined) => {
      there = copy;
      revision = 100;
    },
  };
  const write = async (lease: Lease): Promise<Lease> => {
    if (broker.refuses-- > 0) throw new ApiError('exceeded quota', { code: 403, reason: 'Forbidden' });
    if (there !== undefined && lease.metadata.resourceVersion !== there.metadata.resourceVersion)
      throw new ApiError('the object has been modified', { code: 409, reason: 'Conflict' });
    revision += 1;
    there = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(revision) } };
    if (broker.losesAnswers-- > 0) throw new Error('connection reset before the answer arrived');
    return there;
  };
  const client = {
    create: (_: unknown, lease: Lease) => write(lease),
    update: (_: unknown, lease: Lease) => write(lease),
    get: async () => there,
  };
  const lease = new OwnLease({
    world: { clock: { wallMs: () => wallMs, monotonicMs: () => wallMs } },
    broker: client as unknown as Client,
    clusterId: 'east',
    namespace: 'prod-m-east',
    leaseMs: () => 15_000,
    annotations: () => ({}),
    isJudging: () => false,
    homeAwaySinceMs: () => homeAwaySinceMs,
  });
  lease.adopt(left);
  const renew = async (copy?: Lease) => {
    wallMs += 5_000;
    const { isStrange } = await lease.renew(copy as Heartbeat | undefined, {});
    return isStrange;
  };
  return { broker, renew, setHomeAway: (sinceMs: number | undefined) => (homeAwaySinceMs = sinceMs) };
}

test('own lease: renewed in turn -> nothing strange; the broker is put back -> said once', async () => {
  const { broker, renew } = start();
  await renew();
  const copy = broker.copy();
  expect([await renew(), await renew()]).toEqual([false, false]);
  broker.putBack(copy);
  expect([await renew(), await renew()]).toEqual([true, false]);
});

test('own lease: the broker is put back, and the renewal that notices it gets no answer -> said with the next one', async () => {
  const { broker, renew } = start();
  await renew();
  const copy = broker.copy();
  await renew();
  broker.putBack(copy);
  broker.losesAnswers = 1;
  await expect(renew()).rejects.toThrow('connection reset');
  expect([await renew(), await renew()]).toEqual([true, false]);
});

test('own lease: the copy of a watch is behind our last renewal -> not strange; it shows what we did not write -> strange', async () => {
  const { broker, renew } = start();
  await renew();
  const behind = broker.copy();
  await renew();
  expect([await renew(behind), await renew(behind)]).toEqual([false, false]);
  const ours = broker.copy()!;
  const spec = { ...ours.spec, renewTime: 'another' };
  const written: Lease = { ...ours, spec, metadata: { ...ours.metadata, resourceVersion: '200' } };
  broker.putBack(written);
  expect([await renew(written), await renew()]).toEqual([true, false]);
});

test('own lease: a renewal gets no answer, but was written -> not strange', async () => {
  const { broker, renew } = start();
  await renew();
  broker.losesAnswers = 1;
  await expect(renew()).rejects.toThrow('connection reset');
  expect(await renew()).toBe(false);
});

test('own lease: the first renewals of a run are refused -> nothing strange afterwards, with or without a lease of an earlier run', async () => {
  const earlier = start();
  await earlier.renew();
  for (const left of [undefined, earlier.broker.copy()]) {
    const { broker, renew } = start(left);
    broker.refuses = 2;
    await expect(renew()).rejects.toThrow('quota');
    await expect(renew()).rejects.toThrow('quota');
    expect([await renew(), await renew()]).toEqual([false, false]);
  }
});

test('own lease: the home goes away and comes back -> each renewal meanwhile names the last one that vouched', async () => {
  const { broker, renew, setHomeAway } = start();
  const said = () => {
    const { resourceVersion, annotations } = broker.copy()!.metadata;
    return [
      resourceVersion,
      annotations?.['portolan.dev/home-away-since'],
      annotations?.['portolan.dev/vouched-revision'],
    ];
  };
  await renew();
  await renew();
  expect(said()).toEqual(['2', undefined, undefined]);
  setHomeAway(7_000);
  await renew();
  await renew();
  expect(said()).toEqual(['4', '1970-01-01T00:00:07Z', '2']);
  setHomeAway(undefined);
  await renew();
  expect(said()).toEqual(['5', undefined, undefined]);
});
