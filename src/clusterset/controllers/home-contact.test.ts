import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { HomeContact } from './home-contact.ts';

async function start() {
  const sim = new Simulation({ seed: 1 });
  const home = await startHome(sim);
  const own = sim.world('agent');
  let stoodStillMs = 0;
  const clock = { ...own.clock, monotonicMs: () => own.clock.monotonicMs() + stoodStillMs };
  const world = { clock, timers: own.timers, random: own.random };
  const client = home.clientOf(own);
  const contact = new HomeContact({
    ...{ world, log: silentLog, home: client, systemNamespace: 'portolan-system' },
    onChange: () => {},
  });
  contact.start();
  const link = (state: 'up' | 'silent') => sim.network.setLink('agent', home.url, state);
  const standStill = (ms: number) => {
    stoodStillMs += ms;
  };
  return { sim, contact, link, standStill };
}

test('home contact: the home answers -> for how long; it is away for a while -> from its return on', async () => {
  const { sim, contact, link } = await start();
  expect(contact.answersForMs()).toBe(0);
  await sim.time.advance(60_000);
  expect(contact.answersForMs()).toBeGreaterThan(58_000);
  link('silent');
  await sim.time.advance(10_000);
  expect(contact.answersForMs()).toBe(0);
  link('up');
  await sim.time.advance(10_000);
  expect(contact.answersForMs()).toBeGreaterThan(3_000);
  expect(contact.answersForMs()).toBeLessThanOrEqual(10_000);
});

test('home contact: this process stood still for 20 s -> the home counts as answering from then on, not from before', async () => {
  const { sim, contact, standStill } = await start();
  await sim.time.advance(60_000);
  standStill(20_000);
  expect(contact.answersForMs()).toBe(0);
  await sim.time.advance(5_000);
  expect(contact.answersForMs()).toBeLessThanOrEqual(5_000);
  expect(contact.awaySinceMs()).toBeUndefined();
});
