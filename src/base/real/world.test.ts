import { expect, test } from 'vitest';
import { createRealWorld } from './world.ts';

test('timers: a delay that is over already -> due at once, and Node does not warn', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  const { timers } = createRealWorld();
  await new Promise<void>((resolve) => timers.after(-0.5, resolve));
  await new Promise<void>((resolve) => timers.after(1, resolve));
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});
