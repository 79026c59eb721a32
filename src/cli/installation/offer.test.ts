import { expect, test } from 'vitest';
import { SimHome, startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { nextStep } from './offer.ts';

test('after joining: an embedded home, which stores Deployments and runs no Pods -> the next step is an agent', async () => {
  const simulation = new Simulation({ seed: 1 });
  const options = { name: 'home', serviceRanges: ['10.96.0.0/16'], mayDo: () => true, isEmbedded: true };
  const home = new SimHome({ simulation, ...options });
  await simulation.time.settle(home.start());
  const client = home.clientOf(simulation.world('cli'));
  expect(await simulation.time.settle(nextStep(client))).toBe('next: portolan agent, unless one is running');
});

test('after joining: a home that runs Pods -> the next step is to install', async () => {
  const simulation = new Simulation({ seed: 1 });
  const home = await startHome(simulation);
  const client = home.clientOf(simulation.world('cli'));
  expect(await simulation.time.settle(nextStep(client))).toContain('next: portolan install');
});
