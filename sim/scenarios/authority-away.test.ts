// The home of an embedded broker watches the authorities of its federations: one that is silent cannot withdraw its own words.
import { expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { watchAllAuthorities } from '../../src/federation/authority-watch.ts';
import { type Federation, federationType } from '../../src/federation/kinds/federation.ts';
import { conditionOf } from '../../src/kube/objects/conditions.ts';
import { SimClusterSet, setName } from '../clusterset.ts';

const ref = { name: 'world', namespace: setName };

async function start(status: 'True' | 'False' = 'True') {
  const set = await new SimClusterSet({ clusters: ['east'] }).start({ agents: [] });
  const { admin } = set.broker;
  const real = set.simulation.world('home-broker');
  const clock = { wallMs: () => real.clock.wallMs(), monotonicMs: () => real.clock.monotonicMs() + stoodMs };
  let stoodMs = 0;
  const watch = watchAllAuthorities({ client: admin, world: { ...real, clock }, log: silentLog });
  const federation = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Federation', metadata: ref, spec: {} };
  await admin.create(federationType, federation);
  /** As the authority does, which sees what others wrote. */
  const renew = async () => {
    const time = new Date(real.clock.wallMs()).toISOString();
    const ready = { type: 'Ready', status, reason: 'Told', message: 'all is well', lastTransitionTime: time };
    const body = { status: { authority: { renewTime: time }, conditions: [ready] } };
    await admin.patch(federationType, ref, { kind: 'merge', body }, { subresource: 'status' });
  };
  const run = async (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 5_000) {
      await renew();
      await set.time.advance(5_000);
    }
  };
  const ready = async () => {
    const { status } = await admin.get<Federation>(federationType, ref);
    const { status: is, reason, message } = conditionOf(status?.conditions, 'Ready')!;
    return `${is} ${reason}: ${message.replace(/\d{4}-\S+Z/, 'TIME')}`;
  };
  return { set, run, renew, ready, watch, standStill: (ms: number) => (stoodMs += ms) };
}

const fine = 'True Told: all is well';
const silent = 'Unknown AuthoritySilent: the authority has not reported since TIME; before that: all is well';

test('authority away: it stops renewing -> the Federation is Unknown within 15 s and says since when; back -> Ready', async () => {
  const { set, run, ready, watch } = await start();
  await run(60_000);
  expect(await ready()).toBe(fine);
  await set.time.advance(10_000);
  expect(await ready()).toBe(silent);
  await set.time.advance(60_000);
  expect(await ready()).toBe(silent);
  await run(30_000);
  expect(await ready()).toBe(fine);
  await watch.stop();
  await set.time.advance(60_000);
  expect(await ready()).toBe(fine);
});

test('authority away: the home itself stood still -> no blame for renewals that could not arrive', async () => {
  const { set, run, renew, ready, standStill } = await start();
  await run(20_000);
  standStill(120_000);
  for (let second = 0; second < 8; second += 1) {
    await set.time.advance(1_000);
    expect(await ready()).toBe(fine);
  }
  await renew();
  await run(20_000);
  expect(await ready()).toBe(fine);
});

test('authority away: it had found a fault -> the fault stays', async () => {
  const { set, run, ready } = await start('False');
  await run(10_000);
  await set.time.advance(60_000);
  expect(await ready()).toBe('False Told: all is well');
});
