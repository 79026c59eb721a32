import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { sleep } from '../../base/world.ts';
import { namespaceType } from '../objects/namespace.ts';
import { StoppedAnswering, whileAnswering } from './while-answering.ts';

async function start() {
  const sim = new Simulation({ seed: 1 });
  const home = await startHome(sim);
  const world = sim.world('reader');
  return { sim, home, world, client: home.clientOf(world) };
}

test('while answering: the server is frozen in the middle of the work -> given up within 8 s, whatever the reads wait for', async () => {
  const { sim, home, world, client } = await start();
  let failure: unknown;
  const reads = async () => {
    for (;;) {
      await sleep(world.timers, 100);
      await client.list(namespaceType, { timeoutMs: 60_000 });
    }
  };
  const work = whileAnswering({ world, client }, reads).catch((error: unknown) => {
    failure = error;
  });
  await sim.time.advance(1_000);
  sim.network.setLink('reader', home.url, 'silent');
  await sim.time.advance(8_000);
  await work;
  expect(failure).toBeInstanceOf(StoppedAnswering);
  expect(String(failure)).toMatch(/it stopped answering: .*no answer within 5000 ms/);
});

test('while answering: long work at a server that answers -> its result, and nothing is asked afterwards', async () => {
  const { sim, world, client } = await start();
  const work = whileAnswering({ world, client }, async () => {
    await sleep(world.timers, 30_000);
    return 'done';
  });
  await sim.time.advance(31_000);
  expect(await work).toBe('done');
  client.close();
  await sim.time.advance(10_000);
});

test('while answering: the work fails -> its own error', async () => {
  const { sim, world, client } = await start();
  const work = whileAnswering({ world, client }, () => Promise.reject(new Error('made to fail')));
  await expect(sim.time.settle(work)).rejects.toThrow('made to fail');
});
