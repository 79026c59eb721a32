import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { nextStep } from './offer.ts';

test('after joining: an embedded home, which stores Deployments and runs no Pods -> the next step is an agent', async () => {
  const simulation = new Simulation({ seed: 1 });
  const home = await startHome(simulation);
  const client = home.clientOf(simulation.world('cli'));
  expect(await simulation.time.settle(nextStep(client))).toBe('next: portolan agent, unless one is running');
});
