import { expect, test } from 'vitest';
import { Simulation } from '../../sim/virtual-world.ts';
import { CommandError, exitKindOf } from './exit-codes.ts';
import { type Look, waitUntil } from './wait.ts';

function setUp() {
  const simulation = new Simulation({ seed: 1 });
  const said: string[] = [];
  const deps = {
    world: simulation.world('cli'),
    host: { environment: {}, readText: async () => undefined, run: async () => ({ kind: 'timed out' as const }) },
    print: () => {},
    progress: (line: string) => void said.push(line),
  };
  return { time: simulation.time, said, deps };
}

test('wait: the change takes effect -> its last line; each new reason to wait is said once', async () => {
  const { time, said, deps } = setUp();
  const looks: Look[] = [{ waiting: 'a' }, { waiting: 'a' }, { waiting: 'b' }, { done: 'it is there' }];
  const waiting = waitUntil(deps, { what: 'export x', timeoutMs: 60_000, look: async () => looks.shift()! });
  await time.advance(5_000);
  expect(await waiting).toBe('it is there');
  expect(said).toEqual(['waiting: a', 'waiting: b']);
});

test('wait: time is up -> not ready, with what was tried, how long, and what is missing', async () => {
  const { time, deps } = setUp();
  const look = async () => ({ waiting: 'cluster west has not taken it' });
  const waiting = waitUntil(deps, { what: 'export x', timeoutMs: 2_000, look });
  const failed = waiting.catch((error: unknown) => error);
  await time.advance(3_000);
  const error = await failed;
  expect(error).toBeInstanceOf(CommandError);
  expect(exitKindOf(error)).toBe('notReady');
  expect((error as Error).message).toBe('export x: not done after 2 s: cluster west has not taken it');
});
