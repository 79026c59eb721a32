import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { heartbeatType } from '../../clusterset/kinds/heartbeat.ts';
import { memberQuotaObject } from '../../clusterset/membership/broker-objects.ts';
import type { Client } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/objects/api-error.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { resourceQuotaType } from '../../kube/objects/resource-quota.ts';
import { untilQuotaCounted } from './quota-counted.ts';

const request = { clusterset: 'prod', id: 'east', spec: {} };
const namespace = 'prod-m-east';

/** A home whose counter finds new definitions after 30 s and counts only quotas that were made since. */
async function brokerThatCounts(options: { readonly definitionsFoundMs: number }) {
  const simulation = new Simulation({ seed: 1 });
  const home = await startHome(simulation);
  const world = simulation.world('cli');
  const settle = <T>(promise: Promise<T>) => simulation.time.settle(promise);
  const quota = memberQuotaObject(request);
  const inner = home.clientOf(world);
  let madeMs = world.clock.monotonicMs();
  const startMs = madeMs;
  const client: Client = {
    ...inner,
    create: async (type, object, write) => {
      if (type === heartbeatType && madeMs - startMs < options.definitionsFoundMs) {
        const message = `heartbeats.portolan.dev "x" is forbidden: status unknown for quota: portolan-member`;
        throw new ApiError(message, { code: 403, reason: 'Forbidden' });
      }
      if (type === resourceQuotaType) madeMs = world.clock.monotonicMs();
      return inner.create(type, object, write);
    },
  };
  const made: Namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
  await settle(inner.create(namespaceType, made));
  await settle(inner.create(quota.type, quota.object));
  const warned: string[] = [];
  const wait = (own: { quota?: typeof quota } = { quota }) =>
    settle(
      untilQuotaCounted(
        { world, warn: (line) => void warned.push(line) },
        { client, clusterId: 'east', namespace, ...own },
      ),
    );
  const tookMs = () => world.clock.monotonicMs() - startMs;
  return { wait, warned, tookMs, inner, settle };
}

test('quota of a member: its kinds are not known to the counter yet -> made anew until it is counted, said once', async () => {
  const { wait, warned, tookMs, inner, settle } = await brokerThatCounts({ definitionsFoundMs: 30_000 });
  expect(await wait()).toBe(true);
  expect(tookMs()).toBeGreaterThanOrEqual(30_000);
  expect(tookMs()).toBeLessThan(42_000);
  expect(warned).toEqual(['the broker has not counted the quota of cluster east yet; waiting, up to 90 s']);
  const { spec } = memberQuotaObject(request).object;
  expect(await settle(inner.get(resourceQuotaType, { namespace, name: 'portolan-member' }))).toMatchObject({ spec });
});

test('quota of a member: counted -> no waiting and no word', async () => {
  const { wait, warned, tookMs } = await brokerThatCounts({ definitionsFoundMs: 0 });
  expect([await wait(), warned, tookMs() < 1000]).toEqual([true, [], true]);
});

test('quota of a member: never counted, or without the right to make it anew -> given up after a bound', async () => {
  const { wait, tookMs } = await brokerThatCounts({ definitionsFoundMs: 1e9 });
  expect([await wait({}), tookMs() < 100_000]).toEqual([false, true]);
});
