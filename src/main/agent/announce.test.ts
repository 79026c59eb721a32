import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { announce } from './announce.ts';

async function start() {
  const simulation = new Simulation({ seed: 1 });
  const home = await startHome(simulation);
  const world = simulation.world('agent');
  const lines: string[] = [];
  const stopping = new AbortController();
  const common = { world, home: home.clientOf(world), server: home.url, adminUrl: 'http://127.0.0.1:9' };
  const done = () =>
    announce({ ...common, print: (text) => void lines.push(...text.split('\n')), signal: stopping.signal });
  return { simulation, home, lines, stopping, done };
}

test('agent: its home answers -> ready at once', async () => {
  const { simulation, lines, done } = await start();
  await simulation.time.settle(done());
  expect(lines).toEqual(['ready https://home', 'admin http://127.0.0.1:9']);
});

test('agent: nothing listens at the home -> it says that it waits, and ready only when the home answers', async () => {
  const { simulation, home, lines, done } = await start();
  home.kill();
  const announced = done();
  await simulation.time.advance(20_000);
  expect(lines).toEqual([expect.stringMatching(/^waiting for https:\/\/home: /), 'admin http://127.0.0.1:9']);
  await home.start();
  await simulation.time.settle(announced);
  expect(lines.slice(2)).toEqual(['ready https://home']);
});

test('agent: stopped while it waits -> it ends, and never says that it is ready', async () => {
  const { simulation, home, lines, stopping, done } = await start();
  home.kill();
  const announced = done();
  await simulation.time.advance(5_000);
  stopping.abort();
  await simulation.time.settle(announced);
  expect(lines.join()).not.toContain('ready');
});
