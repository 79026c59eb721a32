import { expect, test } from 'vitest';
import type { Client } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/objects/api-error.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import { leaseType } from '../../kube/objects/lease.ts';
import { OwnLease } from './own-lease.ts';

/** A broker with one lease, which can be put back, and whose answers can be lost. */
function start() {
  let wallMs = 0;
  let there: Lease | undefined;
  let revision = 0;
  const broker = {
    losesAnswers: 0,
    copy: () => structuredClone(there),
    putBack: (copy: Lease | undefined) => {
      there = copy;
      revision = 100;
    },
  };
  const write = async (lease: Lease): Promise<Lease> => {
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
    type: leaseType,
    clusterId: 'east',
    namespace: 'prod-m-east',
    leaseMs: () => 15_000,
    annotations: () => ({}),
  });
  const renew = async () => {
    wallMs += 5_000;
    const { isStrange } = await lease.renew(undefined, {});
    return isStrange;
  };
  return { broker, renew };
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

test('own lease: a renewal gets no answer, but was written -> not strange', async () => {
  const { broker, renew } = start();
  await renew();
  broker.losesAnswers = 1;
  await expect(renew()).rejects.toThrow('connection reset');
  expect(await renew()).toBe(false);
});
